#include "meshard/ops/reshape.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Reshape, FillsInTheSizeLeftOut) {
  EXPECT_EQ(reshape(input({4, 6}), {-1}).shape(), Shape{24});
  EXPECT_EQ(reshape(input({4, 6}), {8, -1}).shape(), (Shape{8, 3}));
  EXPECT_EQ(reshape(input({0, 6}), {3, -1}).shape(), (Shape{3, 0}));
  EXPECT_EQ(reshape(input({1}), {}).shape(), Shape{});
}

TEST(Reshape, IsAMethod) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(x.reshape({3, -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(emitted(x.reshape({6})), emitted(reshape(x, {6})));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)x.reshape({4, 2});
      },
      ErrorCode::kInvalidArgument, {"reshape_test.cc:"}));
}

TEST(Reshape, OfTheSameShapeIsTheSameTensor) {
  Tensor x = input({4, 6});
  EXPECT_EQ(reshape(x, {4, -1}).value(), x.value());
}

TEST(Reshape, Errors) {
  Tensor x = input({4, 6});
  EXPECT_TRUE(throws_error(
      [&] {
        reshape(x, {5, 5});
      },
      ErrorCode::kInvalidArgument,
      {"reshape_test.cc:", "[reshape]", "f32[4,6] has 24", "[5, 5] has 25"}));
  EXPECT_TRUE(throws_error(
      [&] {
        reshape(x, {-1, -1});
      },
      ErrorCode::kInvalidArgument, {"more than one size is -1"}));
  EXPECT_TRUE(throws_error(
      [&] {
        reshape(x, {7, -1});
      },
      ErrorCode::kInvalidArgument, {"cannot infer the size -1", "24", "7"}));
  EXPECT_TRUE(throws_error([&] { reshape(x, {-2, 3}); }, ErrorCode::kInvalidArgument, {"-2"}));
}

TEST(Reshape, Emits) {
  EXPECT_EQ(emitted(reshape(input({4, 6}), {24})),
            "%0 = \"stablehlo.reshape\"(%arg0) : (tensor<4x6xf32>) -> tensor<24xf32>");
}

// Calculated by hand: a factor on both sides keeps its shards in place.
TEST(Reshape, RulePassesTheMajorPartThrough) {
  auto rule = [](Shape from, Shape to) { return rule_of(reshape(input(from), to)); };
  EXPECT_EQ(rule({32}, {8, 4}), "([ij])->([i, j]) {i=8, j=4}");
  EXPECT_EQ(rule({8, 4}, {32}), "([i, j])->([ij]) {i=8, j=4}");
  EXPECT_EQ(rule({8, 16}, {2, 4, 16}), "([ij, k])->([i, j, k]) {i=2, j=4, k=16}");
  EXPECT_EQ(rule({8, 16}, {16, 8}), "([i, jk])->([ij, k]) {i=8, j=2, k=8}");
  EXPECT_EQ(rule({8, 16}, {8, 1, 16}), "([i, k])->([i, j, k]) {i=8, j=1, k=16}");
  EXPECT_EQ(
      rule({6, 4, 8}, {4, 6, 8}),
      "([ij, k, n])->([il, m, n]) {i=2, j=3, k=4, l=2, m=6, n=8} need_replication={j, k, l, m}");
}

// Values from JAX 0.10, with both axes explicit.
TEST(Reshape, ExplicitShardingsFollowOneSplitOrOneMerge) {
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 4, AxisKind::kExplicit}});
  internal::TraceScope trace;
  auto result = [&](Shape from, PartitionSpec spec, Shape to) {
    Sharding sharding(mesh, spec, static_cast<std::size_t>(from.rank()));
    return reshape(make_parameter({DType::f32, from}, sharding, {}), to).sharding()->spec();
  };
  EXPECT_EQ(result({8, 16}, P("x"), {8, 4, 4}), P("x", none, none));
  EXPECT_EQ(result({8, 16}, P("x", "y"), {128}), P(axes("x", "y")));
  EXPECT_EQ(result({4, 2, 8, 1}, P("y"), {4, 16}), P("y", none));
  EXPECT_EQ(result({16}, P("y"), {4, 1, 4, 1}), P("y", none, none, none));
  EXPECT_EQ(result({8, 16, 4}, P(), {8, 4, 4, 2, 2}), P(none, none, none, none, none));
  for (auto [from, spec, to] : {std::tuple{Shape{8, 16, 4}, P("x"), Shape{8, 4, 4, 2, 2}},
                                {Shape{8, 16}, P("x"), Shape{4, 32}},
                                {Shape{8, 16}, P(none, "y"), Shape{128}},
                                {Shape{2, 8, 16}, P(none, "x"), Shape{16, 16}}})
    EXPECT_THROW(result(from, spec, to), Error) << from.to_string() << spec.to_string();
}

TEST(BroadcastInDim, Errors) {
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({3}), {4, 8}, {1});
      },
      ErrorCode::kInvalidArgument,
      {"reshape_test.cc:", "operand f32[3] dimension 0 = 3", "dimension 1 = 8"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({8, 8}), {8, 8}, {1, 0});
      },
      ErrorCode::kInvalidArgument, {"[1, 0] are not ascending"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_in_dim(input({4, 8}), {4, 8}, {1});
      },
      ErrorCode::kInvalidArgument, {"1 dimensions", "rank 2"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_to(input({3}), {4, 8});
      },
      ErrorCode::kInvalidArgument,
      {"[broadcast_to]", "[3]", "[4, 8]", "dimension 0 = 3", "dimension 1 = 8"}));
  EXPECT_TRUE(throws_error(
      [] {
        broadcast_to(input({1, 8}), {8});
      },
      ErrorCode::kInvalidArgument, {"rank 2", "rank 1"}));
}

TEST(BroadcastInDim, Emits) {
  EXPECT_EQ(
      emitted(broadcast_to(input({8, 1}), {4, 8, 2})),
      "%0 = \"stablehlo.broadcast_in_dim\"(%arg0) <{broadcast_dimensions = array<i64: 1, 2>}> : "
      "(tensor<8x1xf32>) -> tensor<4x8x2xf32>");
}

TEST(BroadcastInDim, NewAndRepeatedDimensionsAreFactorsOfTheResultOnly) {
  EXPECT_EQ(rule_of(broadcast_to(input({8, 1}), {4, 8, 2})),
            "([j, l])->([i, j, k]) {i=4, j=8, k=2, l=1}");
}

}  // namespace
}  // namespace meshard
