#include "meshard/ops/shard_to_full.h"

#include <gtest/gtest.h>

#include "meshard/ops/all_reduce.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& two_by_two() {
  static const Mesh mesh({{"x", 2}, {"y", 2}});
  return mesh;
}

TEST(ShardToFull, GivesTheFullShape) {
  Tensor x = local_input({2, 3});
  Tensor full = shard_to_full(x, Sharding(two_by_two(), P("x")), {4, 3});
  EXPECT_EQ(full.shape(), (Shape{4, 3}));
  EXPECT_EQ(varying(full), "full");
  EXPECT_EQ(shard_to_full(x, Sharding(two_by_two(), P("x")), {3, 3}).shape(), (Shape{3, 3}))
      << "the padding is cut off";
  EXPECT_EQ(shard_to_full(x, Sharding(two_by_two(), P("x", "y")), {4, 6}).shape(), (Shape{4, 6}))
      << "what is equal along y counts twice";
  EXPECT_EQ(varying(recorded_vjp(full, full)[0]), R"({"x"})");
}

TEST(ShardToFull, WhatVariesIsNamed) {
  Tensor x = local_input({2});
  EXPECT_TRUE(throws_error(
      [&] { shard_to_full(x, Sharding(two_by_two(), P()), {2}); }, ErrorCode::kInvalidArgument,
      {"[shard_to_full]", R"(varies over {"x"})", "all_reduce", "shard_to_full_test.cc:"}));
  EXPECT_EQ(shard_to_full(all_reduce(x, "x"), Sharding(two_by_two(), P()), {2}).shape(),
            (Shape{2}));
}

TEST(ShardToFull, Errors) {
  Tensor x = local_input({2});
  EXPECT_TRUE(throws_error([&] { shard_to_full(x, Sharding(two_by_two(), P("x")), {6}); },
                           ErrorCode::kInvalidArgument, {"a shard of f32[6]", "is [3]", "f32[2]"}));
  Mesh other({{"z", 4}});
  EXPECT_TRUE(throws_error([&] { shard_to_full(x, Sharding(other, P("z")), {8}); },
                           ErrorCode::kInvalidArgument, {"not a local value of mesh<z=4>"}));
  EXPECT_TRUE(throws_error([&] { shard_to_full(input({2}), Sharding(two_by_two(), P("x")), {4}); },
                           ErrorCode::kInvalidArgument, {"is a full value"}));
}

TEST(ShardToFull, LeavesTheInnermostRegionAlone) {
  AxisSet x(two_by_two(), {"x"}), y(two_by_two(), {"y"});
  Tensor outer = full_to_shard(input({4, 4}), Sharding(two_by_two(), P("x")), x);
  Tensor inner = full_to_shard(outer, Sharding(two_by_two(), P(none, "y")), y);
  Tensor back = shard_to_full(inner, Sharding(two_by_two(), P(none, "y")), {2, 4});
  EXPECT_EQ(*manual_axes(back.value()), *manual_axes(outer.value()));
  EXPECT_EQ(*manual_axes(recorded_vjp(back, back)[0].value()), *manual_axes(inner.value()));
  EXPECT_TRUE(throws_error(
      [&] {
        shard_to_full(inner, Sharding(two_by_two(), P("x")), {4, 2});
      },
      ErrorCode::kInvalidArgument,
      {"not manual in the innermost region", R"(manual over {"y"} inside {"x"})"}));
}

}  // namespace
}  // namespace meshard
