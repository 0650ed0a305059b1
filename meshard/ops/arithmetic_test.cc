#include "meshard/ops/arithmetic.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/composite/create.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Add, OfEqualTypesRecordsOneNode) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  Tensor sum = add(x, y);
  EXPECT_EQ(sum.value()->operands()[0], x.value());
  EXPECT_EQ(sum.value()->operands()[1], y.value());
}

TEST(Subtract, TakesANumberOnTheLeft) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(interpret(subtract(1, x)), HostArray::from_vector<float>({0, -1}));
}

TEST(Multiply, OnlyWantedCotangentsAreRecorded) {
  Tensor x = from_host<float>({1, 2}, {2});
  Tensor mask = from_host<std::int32_t>({1, 0}, {2});
  Tensor product = multiply(x, mask);
  EXPECT_EQ(product.dtype(), DType::f32);
  // The integers are converted by astype.
  EXPECT_EQ(product.value()->operands()[1]->op().name, "astype");
}

TEST(Divide, IntegersGiveF32) {
  Tensor x = from_host<std::int32_t>({1, 2}, {2});
  EXPECT_EQ(interpret(divide(x, 4)), HostArray::from_vector<float>({0.25f, 0.5f}));
}

TEST(Negative, KeepsIntegers) {
  EXPECT_EQ(negative(from_host<std::uint8_t>({1, 2}, {2})).dtype(), DType::u8);
}

TEST(Abs, LeavesUnsignedIntegersAlone) {
  Tensor x = from_host<std::uint8_t>({1, 2}, {2});
  EXPECT_EQ(abs(x).value(), x.value());
}

// Like jax.grad(jax.numpy.abs)(0.0).
TEST(Abs, DerivativeAtZeroIsOne) {
  Tensor y = abs(from_host<double>({0, -2, 2}, {3}));
  Tensor slope = recorded_vjp(y, from_host<double>({1, 1, 1}, {3}))[0];
  EXPECT_EQ(interpret(slope), HostArray::from_vector<double>({1, -1, 1}));
}

TEST(Abs, RefusesBools) {
  EXPECT_TRUE(throws_error([] { abs(from_host(HostArray::scalar(true))); },
                           ErrorCode::kInvalidArgument, {"[abs]", "not bool"}));
}

TEST(Sign, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(sign(astype(x, DType::i32))), "%0 = stablehlo.sign %arg0 : tensor<2x3xi32>");
  EXPECT_EQ(emitted(sign(x)),
            R"(%t0 = stablehlo.constant dense<0.0> : tensor<2x3xf32>
%t1 = stablehlo.sign %arg0 : tensor<2x3xf32>
%t2 = "stablehlo.compare"(%arg0, %t0) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
%0 = "stablehlo.select"(%t2, %t0, %t1) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(Sign, OfComplexNumbersHasTheirDtype) {
  EXPECT_EQ(sign(complex(zeros({3}), ones({3}))).type(), (TensorType{DType::c64, {3}}));
}

TEST(Sign, OfUnsignedIntegersIsZeroOrOne) {
  Tensor x = from_host<std::uint8_t>({0, 1, 200}, {3});
  EXPECT_EQ(interpret(sign(x)), HostArray::from_vector<std::uint8_t>({0, 1, 1}));
}

}  // namespace
}  // namespace meshard
