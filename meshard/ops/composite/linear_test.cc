#include "meshard/ops/composite/linear.h"

#include <gtest/gtest.h>

#include "meshard/ops/dot_general.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// Values and derivatives are tested with golden/txla/linear.json.

TEST(Linear, LeadingDimensionsStay) {
  EXPECT_EQ(linear(input({2, 3, 4}), input({5, 4}), input({5})).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(linear(input({4}), input({5, 4})).shape(), Shape{5});
  Tensor y = linear(input({2, 3, 4}), input({5, 4}));
  EXPECT_EQ(y.value()->op().name, "dot_general") << "and no reshape";
}

TEST(Linear, TheWeightsCotangentIsOneContraction) {
  std::vector<Tensor> cotangents =
      recorded_vjp(linear(input({2, 3, 4}), input({5, 4})), input({2, 3, 5}));
  const Node& node = *cotangents[1].value().node();
  EXPECT_EQ(node.op().name, "dot_general");
  EXPECT_EQ(node.attributes_as<DotGeneralAttributes>().lhs_contracting, (Dimensions{0, 1}));
  EXPECT_EQ(cotangents[1].shape(), (Shape{5, 4}));
}

TEST(Linear, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        linear(input({2, 4}), input({5, 3}));
      },
      invalid, {"linear_test.cc:", "f32[2,4]", "f32[5,3]"}));
  EXPECT_TRUE(throws_error([] { linear(input({}), input({5, 3})); }, invalid, {"f32[]"}));
  EXPECT_TRUE(throws_error(
      [] {
        linear(input({2, 4}), input({5, 4}), input({4}));
      },
      invalid, {"out = 5", "f32[4]"}));
}

}  // namespace
}  // namespace meshard
