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

const TensorType kTen{DType::f32, {10, 32}}, kTwelve{DType::f32, {12, 32}},
    kNumber{DType::f32, Shape()};

std::optional<ShiftedRule> shifted_rule_in(std::string_view op,
                                           const std::vector<TensorType>& operands,
                                           const TensorType& result) {
  stablehlo::Module module =
      stablehlo::Module::parse(
          cat("func.func @main(%x: tensor<12x32xf32>, %y: tensor<10x32xf32>, %z: tensor<f32>) {\n",
              op, "\nreturn\n}\n"))
          .value();
  return shifted_rule(module, module.functions()[0].op->regions[0].ops[0], operands, {&result, 1});
}

TEST(ShiftedRules, Slices) {
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [0:10, 0:32] : (tensor<12x32xf32>) -> tensor<10x32xf32>",
        "%0 = \"stablehlo.slice\"(%x) <{limit_indices = array<i64: 10, 32>, start_indices = "
        "array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<12x32xf32>) -> "
        "tensor<10x32xf32>"}) {
    std::optional<ShiftedRule> rule = shifted_rule_in(op, {kTwelve}, kTen);
    ASSERT_TRUE(rule.has_value()) << op;
    EXPECT_EQ(rule->rule.operands()[0], rule->rule.results()[0]);
    EXPECT_EQ(rule->rule.factors()[0].size, 12);
    EXPECT_EQ(rule->rule.factors()[0].kind, FactorKind::kPermutation);
    EXPECT_EQ(rule->rule.factors()[1].kind, FactorKind::kPassThrough);
    EXPECT_TRUE(rule->keeps_indices);
  }
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [2:12, 0:32] : (tensor<12x32xf32>) -> tensor<10x32xf32>",
        "%0 = \"stablehlo.slice\"(%x) <{limit_indices = array<i64: 12, 32>, start_indices = "
        "array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<12x32xf32>) -> "
        "tensor<10x32xf32>"}) {
    std::optional<ShiftedRule> rule = shifted_rule_in(op, {kTwelve}, kTen);
    ASSERT_TRUE(rule.has_value()) << op;
    EXPECT_FALSE(rule->keeps_indices) << op;
  }
  TensorType half{DType::f32, {6, 32}};
  for (std::string_view op :
       {"%0 = stablehlo.slice %x [0:12:2, 0:32] : (tensor<12x32xf32>) -> tensor<6x32xf32>",
        "%0 = stablehlo.slice %x [0:6, 0:32] : (tensor<12x32xf32>) -> tensor<6x32xf32>",
        "%0 = stablehlo.tanh %x : tensor<12x32xf32>"})
    EXPECT_FALSE(shifted_rule_in(op, {kTwelve}, half).has_value()) << op;
}

TEST(ShiftedRules, Pads) {
  auto pad = [](std::string_view low, std::string_view high, std::string_view interior) {
    return shifted_rule_in(
        cat("%0 = stablehlo.pad %y, %z, low = [", low, ", 0], high = [", high, ", 0], interior = [",
            interior, ", 0] : (tensor<10x32xf32>, tensor<f32>) -> tensor<12x32xf32>"),
        {kTen, kNumber}, kTwelve);
  };
  std::optional<ShiftedRule> rule = pad("0", "2", "0");
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->rule.operands()[0], rule->rule.results()[0]);
  EXPECT_TRUE(rule->rule.operands()[1].empty());
  EXPECT_EQ(rule->rule.factors()[0].size, 12);
  EXPECT_TRUE(rule->keeps_indices);
  EXPECT_FALSE(pad("1", "1", "0")->keeps_indices);
  EXPECT_FALSE(pad("0", "0", "1").has_value());
}

// A loop over i, with constants 0, 1, 2, 3 and 12 around it and `%k` (12) carried unchanged.
std::optional<std::int64_t> trips_in(std::string_view first, std::string_view condition,
                                     std::string_view body) {
  std::string text = cat(R"(func.func @main(%n: tensor<i32>) -> tensor<i32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %m3 = "stablehlo.constant"() <{value = dense<-3> : tensor<i32>}> : () -> tensor<i32>
    %c12 = stablehlo.constant dense<12> : tensor<i32>
    %r:2 = stablehlo.while(%i = )",
                         first, R"(, %k = %c12) : tensor<i32>, tensor<i32>
    cond {
      %t = )",
                         condition, R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      )",
                         body, R"(
      stablehlo.return %j, %k : tensor<i32>, tensor<i32>
    }
    return %r#0 : tensor<i32>
  })");
  stablehlo::Module module = stablehlo::Module::parse(text).value();
  std::optional<std::int64_t> found;
  for_each_op(module.ops(), [&](const stablehlo::ModuleOp& op) {
    if (op.mnemonic == "stablehlo.while") found = trips_of(op, constants_of(module));
  });
  return found;
}

constexpr const char* kPlusOne = "%j = stablehlo.add %i, %c1 : tensor<i32>";
constexpr const char* kPlusTwo = "%j = stablehlo.add %c2, %i : tensor<i32>";
constexpr const char* kMinusOne = "%j = stablehlo.subtract %i, %c1 : tensor<i32>";

TEST(LoopTrips, AreThoseOfTheCounter) {
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), 12);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), 11);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LE, %i, %c12, SIGNED", kPlusTwo), 6);
  EXPECT_EQ(trips_in("%m3", "stablehlo.compare LT, %i, %k, SIGNED", kPlusTwo), 8);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare GT, %i, %c0, SIGNED", kMinusOne), 12);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare GE, %i, %c0, SIGNED", kMinusOne), 13);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare LT, %i, %c0, SIGNED", kPlusOne), 0);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare NE, %i, %c12, SIGNED", kPlusTwo), 6);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare GT, %c12, %i, SIGNED", kPlusOne), 12);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%h = stablehlo.add %i, %c1 : tensor<i32>\n"
                     "%j = stablehlo.add %h, %c2 : tensor<i32>"),
            4);
  EXPECT_EQ(trips_in("%c0",
                     "\"stablehlo.compare\"(%i, %c12) <{comparison_direction = "
                     "#stablehlo<comparison_direction LE>}>",
                     kPlusOne),
            13);
}

TEST(LoopTrips, AreUnknownForOtherLoops) {
  // From, to or by what is not known; and loops that would not end.
  EXPECT_EQ(trips_in("%n", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %n, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%j = stablehlo.add %i, %n : tensor<i32>"),
            std::nullopt);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%j = stablehlo.multiply %i, %c2 : tensor<i32>"),
            std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED", kMinusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare NE, %i, %c12, SIGNED", kPlusTwo), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare EQ, %i, %c12, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.and %i, %c12", kPlusOne), std::nullopt);
}

TEST(LoopTrips, ConstantsAreIntegersOfOneValue) {
  stablehlo::Module module = stablehlo::Module::parse(R"(func.func @main() {
    %a = stablehlo.constant dense<7> : tensor<4xi32>
    %b = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %c = stablehlo.constant dense<1.5> : tensor<f32>
    %d = stablehlo.constant dense<-2> : tensor<i64>
    return
  })")
                                 .value();
  ModuleConstants constants = constants_of(module);
  EXPECT_EQ(constants.size(), 2u);
  for (const auto& [variable, value] : constants)
    EXPECT_EQ(value, module.variable(variable).name == "%a" ? 7 : -2);
}

}  // namespace

}  // namespace meshard
