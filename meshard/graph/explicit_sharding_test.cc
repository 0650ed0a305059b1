#include "meshard/graph/explicit_sharding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"
#include "tests/support/verify.h"

namespace meshard {
namespace {

constexpr AxisKind kTyped = AxisKind::kExplicit;

Mesh typed_mesh() { return Mesh({{"x", 2, kTyped}, {"y", 4, kTyped}}); }
Mesh half_typed_mesh() { return Mesh({{"x", 2, kTyped}, {"z", 4}}); }

// Operands and result have the same rank, with one factor per dimension.
constinit const OpDef joined_op = {.name = "joined",
                                   .operands = "a, b",
                                   .infer = test::infer_first,
                                   .sharding_rule = [](const OpCall& call) {
                                     ShardingRuleBuilder builder;
                                     TensorFactors factors;
                                     for (std::int64_t size : call.operand(0).shape)
                                       factors.push_back({builder.factor(size)});
                                     for (std::size_t i = 0; i < call.operands.size(); ++i)
                                       builder.operand(factors);
                                     return builder.result(factors).build();
                                   }};
const OpDef alike_op = {
    .name = "alike",
    .operands = "a, b",
    .infer = test::infer_first,
    .sharding_rule = joined_op.sharding_rule,
    .sharding_conflict = [](const OpCall&, std::span<const Sharding* const> operands)
        -> std::string { return unlike_operands(operands); }};

Tensor call(const OpDef& op, const Tensor& a, const Tensor& b,
            SourceLocation where = SourceLocation::current()) {
  return record(op, nullptr, {&a, &b}, where);
}

class ExplicitSharding : public testing::Test {
 protected:
  Tensor parameter(const Mesh& mesh, const PartitionSpec& spec,
                   SourceLocation where = SourceLocation::current()) {
    return make_parameter({DType::f32, {8, 16}}, Sharding(mesh, spec), where);
  }
  Tensor plain() { return make_parameter({DType::f32, {8, 16}}, std::nullopt, {}); }
  internal::TraceScope scope_;
};

TEST_F(ExplicitSharding, IsKnownAtTheCall) {
  Tensor a = parameter(typed_mesh(), P("x", none)), b = parameter(typed_mesh(), P(none, "y"));
  EXPECT_EQ(a.sharding(), Sharding(typed_mesh(), P("x", none)));
  EXPECT_EQ(call(joined_op, a, b).sharding(), Sharding(typed_mesh(), P("x", "y")));
  EXPECT_EQ(call(joined_op, a, plain()).sharding(), a.sharding()) << "as if it were replicated";
  EXPECT_FALSE(call(joined_op, plain(), plain()).sharding());
  Mesh plain_mesh({{"x", 2}, {"y", 4}});
  Tensor automatic = parameter(plain_mesh, P("x", none));
  EXPECT_FALSE(call(joined_op, automatic, automatic).sharding());
}

TEST_F(ExplicitSharding, AmbiguityNamesBothSides) {
  Tensor a = parameter(typed_mesh(), P("x", none), {"a.cc", "f", 1});
  Tensor b = parameter(typed_mesh(), P("y", none), {"b.cc", "f", 2});
  EXPECT_TRUE(throws_error(
      [&] { call(joined_op, a, b); }, ErrorCode::kInvalidArgument,
      {"[joined]", "explicit_sharding_test.cc:", "the sharding of the result is ambiguous",
       "{\"x\"} splits dimension 0 of operand 0", "{\"y\"} splits dimension 0 of operand 1",
       "a.cc:1", "P(\"x\", none)", "b.cc:2", "P(\"y\", none)", "mark_sharding"}));
  EXPECT_TRUE(throws_error([&] { call(joined_op, a, parameter(typed_mesh(), P(none, "x"))); },
                           ErrorCode::kInvalidArgument,
                           {"axis \"x\" would split dimensions 0 and 1"}));
}

TEST_F(ExplicitSharding, AxesOfSizeOneDoNotDistinguish) {
  Mesh mesh({{"one", 1, kTyped}, {"x", 2, kTyped}, {"unit", 1, kTyped}});
  const Sharding split(mesh, P(none, "x"));
  Tensor bare = parameter(mesh, P(none, "x")), rows = parameter(mesh, P("one", "x"));
  for (const PartitionSpec& spec :
       {P("one", "x"), P("unit", {"one", "x"}), P(none, {"x", "unit"}), P({"unit", "one"}, "x")})
    for (const OpDef* op : {&joined_op, &alike_op}) {
      Tensor other = parameter(mesh, spec);
      for (const Tensor& met : {call(*op, bare, other), call(*op, other, bare)})
        EXPECT_TRUE(met.sharding()->is_equivalent_to(split, 2)) << op->name << " " << spec;
    }
  EXPECT_EQ(call(alike_op, rows, rows).sharding(), rows.sharding()) << "is kept as it was said";
  EXPECT_TRUE(throws_error([&] { call(alike_op, rows, parameter(mesh, P("x", "one"))); },
                           ErrorCode::kInvalidArgument, {"ambiguous", "P(\"one\", \"x\")"}));
  const Sharding whole(mesh, P(none, none)), unit(mesh, P("one", none));
  EXPECT_TRUE(same_explicit_sharding(&unit, nullptr));
  EXPECT_TRUE(same_explicit_sharding(nullptr, nullptr));
  EXPECT_TRUE(same_explicit_sharding(&unit, &whole));
  EXPECT_FALSE(same_explicit_sharding(&unit, &split));
  EXPECT_FALSE(same_explicit_sharding(nullptr, &split));
  const Sharding summed = whole.with_unreduced({"x"});
  EXPECT_FALSE(same_explicit_sharding(&summed, &whole));
}

TEST_F(ExplicitSharding, UnlikeMeshesDoNotMeet) {
  Tensor a = parameter(typed_mesh(), P("x", none));
  Tensor b = parameter(half_typed_mesh(), P("x", none));
  EXPECT_TRUE(throws_error([&] { call(joined_op, a, b); }, ErrorCode::kInvalidArgument,
                           {"different meshes", "y=4 explicit", "z=4>"}));
}

TEST_F(ExplicitSharding, SomeOpsWantOperandsAlike) {
  Tensor a = parameter(typed_mesh(), P("x", none)), b = parameter(typed_mesh(), P(none, none));
  EXPECT_EQ(call(alike_op, a, a).sharding(), a.sharding());
  EXPECT_EQ(call(alike_op, plain(), a).sharding(), a.sharding());
  EXPECT_TRUE(throws_error([&] { call(alike_op, a, b); }, ErrorCode::kInvalidArgument,
                           {"operands 0 and 1 must have the same sharding", "P(none, none)"}));
  EXPECT_TRUE(
      throws_error([&] { test::plus(a, a); }, ErrorCode::kInvalidArgument, {"no sharding rule"}));
}

TEST_F(ExplicitSharding, AutoAxesStayWithTheCompiler) {
  Mesh mesh = half_typed_mesh();
  EXPECT_EQ(explicit_part(Sharding(mesh, P({"z", "x"}, none))),
            Sharding(mesh, P(DimensionSpec(AxisList{"x"}, true), unconstrained)));
  EXPECT_EQ(explicit_part(Sharding(mesh, P("z", none))),
            Sharding(mesh, P(unconstrained, unconstrained)).with_replicated({"x"}))
      << "open to z alone";
  EXPECT_FALSE(explicit_part(Sharding(Mesh({{"z", 4}}), P("z"))));
  Tensor a = parameter(mesh, P("z", none)), b = parameter(mesh, P("x", "z"));
  EXPECT_EQ(call(joined_op, a, b).sharding(),
            Sharding(mesh, P(DimensionSpec(AxisList{"x"}, true), unconstrained)))
      << "z splits different dimensions, which is not a conflict";
}

TEST_F(ExplicitSharding, SurvivesTheProgram) {
  Tensor a = parameter(typed_mesh(), P("x", none)), sum = call(joined_op, a, a);
  Graph graph = Graph::build(std::vector{a.value()}, std::vector{sum.value()}, scope_.trace());
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(sum.value()->annotations(), a.value()->annotations()) << "they share one object";
}

}  // namespace
}  // namespace meshard
