#include "meshard/ops/sign.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/composite/create.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

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
