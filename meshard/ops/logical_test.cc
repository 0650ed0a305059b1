#include "meshard/ops/logical.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Logical, Emits) {
  Tensor a = from_host(HostArray::from_vector<bool>({true, false})), b = a;
  EXPECT_EQ(emitted(logical_and(a, b)), "%0 = stablehlo.and %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_or(a, b)), "%0 = stablehlo.or %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_xor(a, b)), "%0 = stablehlo.xor %arg0, %arg1 : tensor<2xi1>");
  EXPECT_EQ(emitted(logical_not(a)), "%0 = stablehlo.not %arg0 : tensor<2xi1>");
}

TEST(Logical, TakesBoolsOnly) {
  Tensor numbers = from_host<float>({1, 0}, {2});
  EXPECT_TRUE(throws_error([&] { logical_or(numbers, true); }, ErrorCode::kInvalidArgument,
                           {"[logical_or] takes bools, not f32", "not_equal(x, 0)"}));
  EXPECT_TRUE(throws_error([&] { logical_not(numbers); }, ErrorCode::kInvalidArgument,
                           {"[logical_not] takes bools, not f32"}));
}

}  // namespace
}  // namespace meshard
