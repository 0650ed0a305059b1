#include "meshard/ops/sharding_constraint.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ShardingConstraint, HasOneFormForEachMeaning) {
  Mesh mesh({{"x", 2}});
  Tensor marked = sharding_constraint(input({4, 8}), Sharding(mesh, P("x")));
  EXPECT_EQ(*marked.sharding(), Sharding(mesh, P("x", none)));
  EXPECT_EQ(marked.type(), input({4, 8}).type());
}

TEST(ShardingConstraint, MoreDimensionsThanTheTensorIsAnError) {
  Mesh mesh({{"x", 2}});
  EXPECT_TRUE(throws_error(
      [&] { sharding_constraint(input({4}), Sharding(mesh, P("x", none))); },
      ErrorCode::kInvalidArgument,
      {"sharding_constraint_test.cc:", "[sharding_constraint]", "2 dimensions", "f32[4] has 1"}));
}

TEST(ShardingConstraint, EmitsTheShardyTextItIsGiven) {
  Tensor marked = sharding_constraint(input({4}), Sharding(Mesh({{"x", 2}}), P("x")));
  const Node& node = *marked.value().node();
  OpCall call{
      .op = node.op(), .attributes = node.attributes(), .operands = {}, .results = {}, .where = {}};
  stablehlo::ModuleWriter writer;
  stablehlo::Typed operand(stablehlo::Value::argument(0), node.type());
  stablehlo::Typed result(stablehlo::Value::result(0), node.type());
  stablehlo::ArgumentText argument{
      .type = &node.type(), .sharding = {}, .name = {}, .attributes = {}};
  stablehlo::ResultText returned{.type = &node.type(), .sharding = {}, .attributes = {}};
  writer.begin_function("main", {argument}, {returned});
  OpEmission out{writer, {&operand, 1}, {&result, 1}, "n3", "<@mesh, [{\"x\"}]>"};
  node.op().emit(call, out);
  writer.end_function({result});
  EXPECT_NE(
      std::move(writer).finish().find(
          "%0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}]> : tensor<4xf32> loc(\"n3\")"),
      std::string::npos);
}

}  // namespace
}  // namespace meshard
