#include "meshard/ops/identity.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(StopGradient, IsAReshapeToTheSameShape) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(stop_gradient(x)),
            R"(%0 = "stablehlo.reshape"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(StopGradient, PassesNoCotangent) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_FALSE(recorded_vjp(stop_gradient(x), x)[0].defined());
}

TEST(OptimizationBarrier, Emits) {
  EXPECT_EQ(emitted(optimization_barrier(input({4}))),
            "%0 = \"stablehlo.optimization_barrier\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>");
}

TEST(OptimizationBarrier, SeveralPassTogether) {
  std::vector<Tensor> y = optimization_barrier({input({4}), input({2, 2})});
  EXPECT_EQ(emitted(y[1]),
            "%0, %1 = \"stablehlo.optimization_barrier\"(%arg0, %arg1) : (tensor<4xf32>, "
            "tensor<2x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>)");
  EXPECT_EQ(y[0].value().node(), y[1].value().node());
  EXPECT_TRUE(optimization_barrier(std::vector<Tensor>{}).empty());
  EXPECT_TRUE(throws_error(
      [] {
        optimization_barrier({input({4}), Tensor()});
      },
      ErrorCode::kInvalidArgument, {"operand 1", "no value"}));
}

TEST(CheckpointName, NamesAValue) {
  Tensor y = checkpoint_name(input({4}), "mlp");
  EXPECT_EQ(*checkpoint_name_of(*y.value().node()), "mlp");
  EXPECT_EQ(checkpoint_name_of(*input({4}).value().node()), nullptr);
  EXPECT_NE(emitted(y).find("stablehlo.reshape"), std::string::npos);
  for (const char* name : {"", "a,b", "\""})
    EXPECT_TRUE(throws_error([&] { checkpoint_name(input({4}), name); },
                             ErrorCode::kInvalidArgument, {"invalid name"}));
}

TEST(ShardingConstraint, HasOneFormForEachMeaning) {
  Mesh mesh({{"x", 2}});
  Tensor marked = sharding_constraint(input({4, 8}), Sharding(mesh, P("x")));
  EXPECT_EQ(*marked.sharding(), Sharding(mesh, P("x", none)));
  EXPECT_EQ(marked.type(), input({4, 8}).type());
}

TEST(ShardingConstraint, MoreDimensionsThanTheTensorIsAnError) {
  Mesh mesh({{"x", 2}});
  EXPECT_TRUE(
      throws_error([&] { sharding_constraint(input({4}), Sharding(mesh, P("x", none))); },
                   ErrorCode::kInvalidArgument,
                   {"identity_test.cc:", "[sharding_constraint]", "2 dimensions", "f32[4] has 1"}));
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
