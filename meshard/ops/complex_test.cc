#include "meshard/ops/complex.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/op_testutil.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/selection.h"
#include "meshard/ops/sort.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Complex, Types) {
  EXPECT_EQ(complex(input({2}), input({2})).type().to_string(), "c64[2]");
  EXPECT_EQ(complex(input({2, 1}, DType::f64), input({3})).type().to_string(), "c128[2,3]");
  EXPECT_EQ(complex(input({2}, DType::i32), 1).type().to_string(), "c64[2]");
  EXPECT_EQ(complex(input({2}, DType::bf16), 0.5).type().to_string(), "c64[2]");
  Tensor z = input({2}, DType::c64);
  EXPECT_EQ((z * 2.5).dtype(), DType::c64);
  EXPECT_EQ((z + input({2}, DType::f64)).dtype(), DType::c128);
  EXPECT_EQ((z / input({2}, DType::i32)).dtype(), DType::c64);
  EXPECT_EQ(exp(z).dtype(), DType::c64);
  EXPECT_EQ(equal(z, 1).dtype(), DType::bool_);
  EXPECT_EQ(conj(z).dtype(), DType::c64);
  EXPECT_EQ(conj(input({2})).dtype(), DType::f32);
  EXPECT_EQ(astype(z, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(astype(z, DType::bool_).dtype(), DType::bool_);
  EXPECT_EQ(sum(z).dtype(), DType::c64);
}

TEST(Complex, EmitsAsSpecified) {
  EXPECT_EQ(emitted(complex(input({2}), input({2}))),
            "%0 = \"stablehlo.complex\"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> "
            "tensor<2xcomplex<f32>>");
  EXPECT_EQ(emitted(abs(input({2}, DType::c128))),
            "%0 = \"stablehlo.abs\"(%arg0) : (tensor<2xcomplex<f64>>) -> tensor<2xf64>");
}

TEST(Complex, HasNoOrder) {
  Tensor z = input({2}, DType::c64), x = input({2});
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {"complex_test.cc:", part, "c64"}));
  };
  fails("[less]", [&] { less(z, x); });
  fails("[maximum]", [&] { maximum(z, z); });
  fails("[max]", [&] { max(z); });
  fails("[sort]", [&] { sort(z); });
  fails("[complex] the parts must be real numbers", [&] { complex(z, 1); });
}

TEST(Real, OfComplexAndOfRealNumbers) {
  EXPECT_EQ(emitted(real(input({2}, DType::c128))),
            "%0 = \"stablehlo.real\"(%arg0) : (tensor<2xcomplex<f64>>) -> tensor<2xf64>");
  Tensor x = from_host(HostArray::from_vector<float>({1, -2}));
  EXPECT_EQ(interpret(real(x)), HostArray::from_vector<float>({1, -2}));
}

TEST(Imag, OfComplexAndOfRealNumbers) {
  EXPECT_EQ(emitted(imag(input({2}, DType::c128))),
            "%0 = \"stablehlo.imag\"(%arg0) : (tensor<2xcomplex<f64>>) -> tensor<2xf64>");
  Tensor x = from_host(HostArray::from_vector<float>({1, -2}));
  EXPECT_EQ(interpret(imag(x)), HostArray::from_vector<float>({0, 0}));
}

}  // namespace
}  // namespace meshard
