#include "meshard/explain/predict/unruled_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using testing::ElementsAre;

std::optional<StatedCollective> collective_in(std::string_view op) {
  stablehlo::Module module =
      stablehlo::Module::parse(cat("func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n", op,
                                   "\nreturn %x : tensor<8xf32>\n}\n"))
          .value();
  return collective_of(module, module.functions()[0].op->regions[0].ops[0]);
}

TEST(UnruledOps, KindsAndGroups) {
  std::optional<StatedCollective> sum = collective_in(
      R"(%0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %1 = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<8xf32>)");
  ASSERT_TRUE(sum.has_value());
  EXPECT_EQ(sum->kind, CollectiveKind::kAllReduce);
  EXPECT_THAT(sum->groups, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  std::optional<StatedCollective> shift = collective_in(
      R"(%0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>)");
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->kind, CollectiveKind::kCollectivePermute);
  EXPECT_THAT(shift->groups, ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
  std::optional<StatedCollective> uneven = collective_in(
      R"(%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>)");
  EXPECT_THAT(uneven->groups, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(
      collective_in(
          R"(%0 = "stablehlo.all_to_all"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<8xf32>) -> tensor<8xf32>)")
          ->groups,
      ElementsAre(ElementsAre(0)));
  EXPECT_FALSE(collective_in("%0 = stablehlo.tanh %x : tensor<8xf32>").has_value());
}

// As JAX 0.12 writes them.
TEST(UnruledOps, GroupsAlongAxes) {
  auto axes_of = [](std::string_view refs) {
    return collective_in(
               cat(R"(%0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [)",
                   refs, R"(]>}> : (tensor<8xf32>) -> tensor<8xf32>)"))
        ->axes;
  };
  EXPECT_EQ(axes_of(R"(#stablehlo.axis_ref<name = "model">)"), AxisList({"model"}));
  EXPECT_EQ(axes_of(R"(#stablehlo.axis_ref<name = "a">, #stablehlo.axis_ref<name = "b c", )"
                    R"(sub_axis_info = (2)4>)"),
            AxisList({AxisRef("a"), AxisRef("b c", 2, 4)}));
  EXPECT_EQ(axes_of(""), AxisList());
  EXPECT_EQ(
      collective_in(
          R"(%0 = "stablehlo.all_gather"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>)")
          ->axes,
      std::nullopt);
}

TEST(UnruledOps, DimensionsOfEqualSizeCorrespond) {
  TensorType part{DType::f32, {4, 8}}, whole{DType::f32, {16, 8}};
  std::optional<ShardingRule> rule = rule_by_sizes({&part, 1}, {&whole, 1});
  ASSERT_TRUE(rule.has_value());
  EXPECT_NE(rule->operands()[0][0], rule->results()[0][0]);
  EXPECT_EQ(rule->operands()[0][1], rule->results()[0][1]);
  TensorType vector{DType::f32, {8}};
  EXPECT_FALSE(rule_by_sizes({&part, 1}, {&vector, 1}).has_value());
  EXPECT_FALSE(rule_by_sizes({&part, 1}, {}).has_value());
}

TEST(UnruledOps, BordersOfManualComputations) {
  EXPECT_THAT(shardings_in(R"([<@mesh, [{"x"}, {}]>, <@mesh, [{?}], replicated={"y"}>])"),
              ElementsAre(R"(<@mesh, [{"x"}, {}]>)", R"(<@mesh, [{?}], replicated={"y"}>)"));
  EXPECT_THAT(shardings_in(R"(#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>)"),
              ElementsAre(R"(<@mesh, [{"x"}]>)"));
  EXPECT_THAT(shardings_in("[]"), ElementsAre());
  EXPECT_THAT(shardings_in(""), ElementsAre());
  EXPECT_THAT(axes_in(R"(#sdy<manual_axes{"x", "y"}>)"), ElementsAre("x", "y"));
  EXPECT_THAT(axes_in(R"({"tp"})"), ElementsAre("tp"));
  EXPECT_THAT(axes_in(R"({"tp)"), ElementsAre());
}

}  // namespace
}  // namespace meshard
