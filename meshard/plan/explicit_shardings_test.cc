#include "meshard/plan/explicit_shardings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/ops/all.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/stablehlo/module.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The product sums over dimensions that are split alike: its result may be split or not. The tanh
// follows from it, and the last product from its operands.
constexpr const char* kChoices =
    R"(module @jit_step attributes {mhlo.num_partitions = 8 : i32, jax.uses_shape_polymorphism = false} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>} loc("x"), %arg1: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("w"), %arg2: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("v")) -> (tensor<64x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32> loc("jit(step)/dot_general"("step.py":3:0))
    %1 = stablehlo.tanh %0 : tensor<64x16xf32> loc("jit(step)/tanh"("step.py":4:0))
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32> loc("jit(step)/dot_general"("step.py":5:0))
    return %2 : tensor<64x8xf32>
  }
}
)";

bool has_cpu() { return pjrt::find_plugins().first("cpu").ok(); }

std::vector<std::string> traffic(std::string_view module) {
  std::vector<std::string> out;
  ProgramReport report = explain_module(module, Target::parse("cpu:8").value());
  for (const LogicalCollective& one : report.logical_collectives())
    out.push_back(cat(enum_name(one.whole.kind), " ", to_string(*one.whole.axes), " ",
                      one.whole.total_bytes()));
  return out;
}

TEST(ExplicitShardings, OffersWhatDoesNotFollow) {
  if (!has_cpu()) GTEST_SKIP() << "no CPU plugin";
  ExplicitShardings found = explicit_shardings(kChoices, Target::parse("cpu:8").value());
  std::vector<std::string> values;
  for (const ChosenSharding& each : found.offered)
    if (each.part == ShardedPart::kValue) values.push_back(cat(each.place(), " ", each.op));
  EXPECT_THAT(values, ElementsAre("step.py:3 dot_general"));
  EXPECT_EQ(found.determined, 2);
  EXPECT_TRUE(found.dropped.empty());
  EXPECT_EQ(found.collectives, 1);
  const ChosenSharding* product = nullptr;
  for (const ChosenSharding& each : found.offered)
    if (each.part == ShardedPart::kValue) product = &each;
  ASSERT_TRUE(product);
  EXPECT_THAT(product->constraint, HasSubstr("jax.lax.with_sharding_constraint(..., P(\"data\", "));
  EXPECT_THAT(product->other_constraint, HasSubstr("out_sharding=P(\"data\", "));
  // The constrained program says the same with more words.
  EXPECT_THAT(found.module, HasSubstr("= sdy.sharding_constraint "));
  EXPECT_EQ(traffic(found.module), traffic(kChoices));
  EXPECT_THAT(found.to_string(), HasSubstr("the program has the same 1 collective, "));
  EXPECT_THAT(to_json(found), HasSubstr("\"schema\":\"meshard.explicit\""));
  // What is written down leaves no choice.
  ExplicitShardings again = explicit_shardings(found.module, Target::parse("cpu:8").value());
  EXPECT_TRUE(again.offered.empty()) << again.to_string();
}

TEST(ExplicitShardings, WordsOfOtherFrameworks) {
  if (!has_cpu()) GTEST_SKIP() << "no CPU plugin";
  ExplicitShardingsOptions options;
  auto constraints = [&](ConstraintWords words) {
    options.words = words;
    std::string all;
    for (const ChosenSharding& each :
         explicit_shardings(kChoices, Target::parse("cpu:8").value(), options).offered)
      append(all, each.constraint, "; ", each.other_constraint, "\n");
    return all;
  };
  std::string torch = constraints(ConstraintWords::kPyTorch);
  EXPECT_THAT(torch, HasSubstr("meshard.torch.mark_sharding("));
  EXPECT_THAT(torch, HasSubstr(".redistribute(mesh, (Shard(dim=0), "));
  EXPECT_THAT(constraints(ConstraintWords::kMeshard),
              HasSubstr("mark_sharding(..., mesh, P(\"data\""));
}

TEST(ExplicitShardings, FewCompilesDropWhatIsNotKnown) {
  if (!has_cpu()) GTEST_SKIP() << "no CPU plugin";
  ExplicitShardingsOptions options;
  options.most_compiles = 2;
  ExplicitShardings found = explicit_shardings(kChoices, Target::parse("cpu:8").value(), options);
  EXPECT_TRUE(found.offered.empty());
  EXPECT_EQ(found.module, kChoices);
  ASSERT_FALSE(found.dropped.empty());
  EXPECT_THAT(found.to_string(), HasSubstr("not known after 2 compiles"));
}

TEST(ExplicitShardings, WhatIsRefused) {
  Target target = Target::parse("cpu:8").value();
  EXPECT_TRUE(throws_error([&] { explicit_shardings("ML\xefR", target); }, ErrorCode::kDataLoss,
                           {"explicit_shardings_test.cc:"}));
  if (!has_cpu()) GTEST_SKIP() << "no CPU plugin";
  EXPECT_TRUE(throws_error(
      [&] {
        explicit_shardings(
            "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : "
            "tensor<8xf32>\n}\n",
            Target::parse("cpu:1").value());
      },
      ErrorCode::kInvalidArgument, {"[explicit] the program has no mesh"}));
}

}  // namespace
}  // namespace meshard
