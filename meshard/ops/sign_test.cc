#include "meshard/ops/sign.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Sign, Emits) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(sign(x)), "%0 = stablehlo.sign %arg0 : tensor<2x3xf32>");
}

TEST(Sign, OfUnsignedIntegersIsZeroOrOne) {
  Tensor x = from_host<std::uint8_t>({0, 1, 200}, {3});
  EXPECT_EQ(interpret(sign(x)), HostArray::from_vector<std::uint8_t>({0, 1, 1}));
}

}  // namespace
}  // namespace meshard
