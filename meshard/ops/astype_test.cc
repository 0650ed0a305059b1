#include "meshard/ops/astype.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Astype, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(astype(x, DType::bf16)),
            R"(%0 = "stablehlo.convert"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xbf16>)");
}

TEST(Astype, ToItsOwnDtypeIsTheSameTensor) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(astype(x, DType::f32).value(), x.value());
}

TEST(Astype, TakesNumbers) {
  EXPECT_EQ(astype(2, DType::f64).type(), (TensorType{DType::f64, Shape{}}));
}

TEST(Astype, CotangentsTakeTheOperandsDtype) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor y = astype(x, DType::bf16);
  EXPECT_EQ(recorded_vjp(y, astype(x, DType::bf16))[0].dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
