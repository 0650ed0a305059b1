#include "meshard/graph/forbid_collectives.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

constexpr AxisKind kKnown = AxisKind::kExplicit;

Mesh known_mesh() { return Mesh({{"x", 2, kKnown}, {"y", 4, kKnown}, {"auto", 2}}); }

// Sums dimension 1, so that an axis that splits it communicates.
constinit const OpDef row_sum_op = {
    .name = "row_sum",
    .operands = "a",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          results.push_back({DType::f32, {call.operand(0).shape[0]}});
        },
    .sharding_rule =
        [](const OpCall& call) {
          ShardingRuleBuilder builder;
          int i = builder.factor(call.operand(0).shape[0]);
          int j = builder.factor(call.operand(0).shape[1], FactorKind::kReduction);
          return builder.operand({{i}, {j}}).result({{i}}).build();
        }};

class Forbidding : public testing::Test {
 protected:
  Tensor parameter(const PartitionSpec& spec, const Mesh& mesh = known_mesh()) {
    return make_parameter({DType::f32, {8, 16}}, Sharding(mesh, spec), {"params.cc", "f", 7});
  }
  Tensor row_sum(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    return record(row_sum_op, nullptr, {&x}, where);
  }
  internal::TraceScope scope_;
};

TEST_F(Forbidding, AnOpThatCommunicatesIsAnErrorAtItsLine) {
  Tensor x = parameter(P("x", "y"));
  row_sum(x);
  ForbidCollectives quiet({"y"}, {"scope.cc", "f", 3});
  EXPECT_TRUE(throws_error(
      [&] {
        row_sum(x, {"user.cc", "f", 12});
      },
      ErrorCode::kInvalidArgument,
      {"user.cc:12", "[row_sum] communicates over axis \"y\"",
       "{\"y\"} splits dimension 1 of operand 0, which the op sums", "made at params.cc:7",
       "scope.cc:3"}));
  row_sum(parameter(P("x", none)));
  row_sum(parameter(P("y", "x")));
}

TEST_F(Forbidding, AllScopesCountUntilTheyEnd) {
  Tensor x = parameter(P("x", "y"));
  {
    ForbidCollectives outer({"y"});
    ForbidCollectives inner({"x"});
    EXPECT_TRUE(throws_error([&] { row_sum(x); }, ErrorCode::kInvalidArgument, {"\"y\""}));
  }
  row_sum(x);
  EXPECT_EQ(internal::recorder().forbidden, nullptr);
  EXPECT_TRUE(throws_error([] { ForbidCollectives empty(std::vector<std::string>{}); },
                           ErrorCode::kInvalidArgument, {"no axis is named"}));
}

TEST_F(Forbidding, WhatIsNotKnownIsAnError) {
  ForbidCollectives quiet({"auto"});
  EXPECT_TRUE(throws_error([&] { row_sum(parameter(P("x", none))); }, ErrorCode::kInvalidArgument,
                           {"automatic axis \"auto\"", "Make the axis explicit", "params.cc:7"}));
  ForbidCollectives unknown({"z"});
  EXPECT_TRUE(throws_error(
      [&] {
        row_sum(parameter(P("x", none), Mesh({{"x", 2, kKnown}})));
      },
      ErrorCode::kInvalidArgument, {"has no axis \"z\""}));
  row_sum(make_parameter({DType::f32, {8, 16}}, std::nullopt, {}));
}

TEST_F(Forbidding, AxesOfSizeOneMoveNothing) {
  Mesh mesh({{"one", 1, kKnown}, {"x", 2, kKnown}, {"unit", 1}});
  ForbidCollectives quiet({"one", "unit"});
  row_sum(parameter(P("x", "one"), mesh));
}

TEST_F(Forbidding, LocalValuesMeetNoOtherDevice) {
  ForbidCollectives quiet({"x"});
  Tensor free = make_parameter({DType::f32, {8, 16}}, std::nullopt, {});
  test::scale(test::local(free, {AxisRef("x")}, {AxisRef("x")}), 2);
  EXPECT_TRUE(throws_error([&] { test::local(free, {AxisRef("y")}, {}); },
                           ErrorCode::kInvalidArgument, {"axis \"x\" is not manual"}));
}

}  // namespace
}  // namespace meshard
