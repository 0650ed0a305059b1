#include "meshard/ops/composite/special_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(SpecialValues, AreFound) {
  Tensor x = from_host<float>({1, NAN, INFINITY, -INFINITY}, {4});
  EXPECT_EQ(interpret(isnan(x)), HostArray::from_vector<bool>({false, true, false, false}));
  EXPECT_EQ(interpret(isinf(x)), HostArray::from_vector<bool>({false, false, true, true}));
}

TEST(SpecialValues, IntegersHaveNone) {
  Tensor x = from_host<std::int32_t>({0, 7}, {2});
  EXPECT_EQ(interpret(isnan(x)), HostArray::from_vector<bool>({false, false}));
  EXPECT_EQ(interpret(isinf(x)), HostArray::from_vector<bool>({false, false}));
}

}  // namespace
}  // namespace meshard
