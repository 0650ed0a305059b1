#include "meshard/ops/composite/clear_sharding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/op_testutil.h"

namespace meshard {
namespace {

const Mesh kPair({{"x", 2}});

TEST(ClearSharding, OfARecordedValueIsTheValueBeforeItsMarks) {
  Tensor sum = add(input({4, 8}), 1);
  Tensor marked = mark_sharding(mark_sharding(sum, kPair, P("x")), kPair, P(none, "x"));
  EXPECT_EQ(clear_sharding(marked).value(), sum.value());
  EXPECT_TRUE(marked.sharding()) << "the marked handle stays as it is";
}

TEST(ClearSharding, OfAnUnmarkedValueIsThatValue) {
  Tensor host = input({4}), recorded = add(host, 1);
  EXPECT_EQ(clear_sharding(host).value(), host.value());
  EXPECT_EQ(clear_sharding(recorded).value(), recorded.value());
}

TEST(ClearSharding, InATraceLeavesTheCompilerFree) {
  internal::TraceScope trace;
  Tensor argument = make_parameter({DType::f32, {4, 8}}, Sharding(kPair, P("x", none)), {});
  Tensor cleared = clear_sharding(argument);
  EXPECT_NE(cleared.value(), argument.value());
  EXPECT_FALSE(cleared.sharding());
  EXPECT_TRUE(is_unplaced(cleared.value())) << "it may be used on other devices";
  EXPECT_FALSE(clear_sharding(mark_sharding(argument, kPair, P(none, "x"))).sharding());
}

TEST(ClearSharding, InADifferentiatedFunctionKeepsThePathToItsInput) {
  internal::KeepOperandsScope differentiating;
  Tensor marked = mark_sharding(add(input({4, 8}), 1), kPair, P("x"));
  Tensor cleared = clear_sharding(marked);
  ASSERT_EQ(cleared.value()->operands().size(), 1u);
  EXPECT_EQ(cleared.value()->operands()[0], marked.value());
  EXPECT_FALSE(cleared.sharding());
}

// On a mesh with explicit axes, the value keeps a sharding, whose dimensions all become open.
TEST(ClearSharding, OverExplicitAxes) {
  internal::TraceScope trace;
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 2}});
  Tensor argument = make_parameter({DType::f32, {4, 8}}, Sharding(mesh, P("x", "y")), {});
  EXPECT_EQ(clear_sharding(argument).sharding(), Sharding(mesh, P(unconstrained, unconstrained)));
}

}  // namespace
}  // namespace meshard
