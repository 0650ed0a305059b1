#include "meshard/ops/manual_values.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/collectives.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& two_by_four() {
  static const Mesh mesh({{"x", 2}, {"y", 4}});
  return mesh;
}

TEST(FullToShard, GivesTheShardRoundedUp) {
  Tensor x = full_to_shard(input({7, 8}), Sharding(two_by_four(), P("y", "x")),
                           AxisSet::all(two_by_four()));
  EXPECT_EQ(x.shape(), (Shape{2, 4}));
  EXPECT_EQ(varying(x), R"({"x", "y"})");
  EXPECT_EQ(varying(full_to_shard(input({8}), Sharding(two_by_four(), P("y")),
                                  AxisSet::all(two_by_four()))),
            R"({"y"})");
  Tensor back = recorded_vjp(x, x)[0];
  EXPECT_EQ(varying(back), "full");
  EXPECT_EQ(back.shape(), (Shape{7, 8}));
}

TEST(FullToShard, SpecsAreOfManualAxes) {
  AxisSet y(two_by_four(), {"y"});
  auto enter = [&](PartitionSpec spec) {
    return [&, spec] { full_to_shard(input({8}), Sharding(two_by_four(), spec), y); };
  };
  EXPECT_TRUE(throws_error(enter(P("x")), ErrorCode::kInvalidArgument,
                           {"[full_to_shard]", R"(split by {"x"}, but the manual axes are {"y"})",
                            "manual_values_test.cc:"}));
  EXPECT_TRUE(
      throws_error(enter(P(unconstrained)), ErrorCode::kInvalidArgument, {"dimension 0 is open"}));
  EXPECT_TRUE(throws_error(enter(P(AxisRef("y", 1, 2))), ErrorCode::kInvalidArgument,
                           {"is a part of an axis"}));
  EXPECT_TRUE(
      throws_error(enter(P("y", none)), ErrorCode::kInvalidArgument, {"describes 2 dimensions"}));
}

TEST(FullToShard, IsNotEnteredTwice) {
  Tensor x = local_input({2});
  auto enter = [&](const Mesh& mesh, AxisSet axes) {
    return [=] { full_to_shard(x, Sharding(mesh, P(none)), axes); };
  };
  Mesh square({{"x", 2}, {"y", 2}});
  EXPECT_TRUE(throws_error(enter(square, AxisSet::all(square)), ErrorCode::kInvalidArgument,
                           {"cannot enter these manual axes twice", R"(manual over {"x", "y"})"}));
  EXPECT_TRUE(throws_error(enter(square, {}), ErrorCode::kInvalidArgument,
                           {"no manual axis to enter is given", R"(manual over {"x", "y"})"}));
  EXPECT_TRUE(throws_error(enter(two_by_four(), AxisSet(two_by_four(), {"y"})),
                           ErrorCode::kInvalidArgument, {"another mesh", "mesh<x=2, y=4>"}));
}

TEST(FullToShard, EntersARegionInsideAnother) {
  AxisSet x(two_by_four(), {"x"}), y(two_by_four(), {"y"});
  Tensor outer = full_to_shard(input({8, 8}), Sharding(two_by_four(), P(none, "y")), y);
  Tensor inner = full_to_shard(outer, Sharding(two_by_four(), P("x")), x);
  EXPECT_EQ(inner.shape(), (Shape{4, 2}));
  const ManualAxes& place = *manual_axes(inner.value());
  EXPECT_EQ(place, (ManualAxes{two_by_four(), x | y, x | y, {y}}));
  Tensor back = recorded_vjp(inner, inner)[0];
  EXPECT_EQ(*manual_axes(back.value()), *manual_axes(outer.value()));
  EXPECT_EQ(back.shape(), (Shape{8, 2}));
}

TEST(FullToShard, ConstraintsInsideAreOfTheOtherAxes) {
  Tensor x =
      full_to_shard(input({8, 8}), Sharding(two_by_four(), P("y")), AxisSet(two_by_four(), {"y"}));
  Tensor marked = sharding_constraint(x, Sharding(two_by_four(), P(none, "x")));
  EXPECT_EQ(varying(marked), R"({"y"})");
  EXPECT_TRUE(throws_error([&] { sharding_constraint(x, Sharding(two_by_four(), P("y"))); },
                           ErrorCode::kInvalidArgument,
                           {R"(axis "y" is manual here)", "manual_values_test.cc:"}));
  Mesh other({{"z", 8}});
  EXPECT_TRUE(throws_error([&] { sharding_constraint(x, Sharding(other, P("z"))); },
                           ErrorCode::kInvalidArgument, {"mesh<z=8>", "mesh<x=2, y=4>"}));
}

TEST(FullToShard, LocalAndFullValuesDoNotMeet) {
  EXPECT_TRUE(throws_error([] { add(local_input({2}), input({2})); }, ErrorCode::kInvalidArgument,
                           {"[add]", "operand 0", "operand 1", "is a full value"}));
  EXPECT_EQ(varying(add(local_input({2}), 1.5)), R"({"x"})");
}

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
      {"[shard_to_full]", R"(varies over {"x"})", "all_reduce", "manual_values_test.cc:"}));
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

TEST(Vary, CountsAsOneOnEachDevice) {
  Tensor x = local_input({2});
  Tensor wide = vary(x, {"x", "y"});
  EXPECT_EQ(varying(wide), R"({"x", "y"})");
  EXPECT_EQ(vary(x, "x").value(), x.value()) << "it varies already";
}

TEST(Vary, WidenedMakesFreeValuesLocal) {
  Tensor x = vary(local_input({2}), "y");
  Tensor local = widened(zeros({3}), *manual_axes(x.value()));
  EXPECT_EQ(varying(local), R"({"x", "y"})");
  EXPECT_EQ(local.shape(), (Shape{3}));
}

TEST(Vary, Errors) {
  EXPECT_TRUE(throws_error([] { vary(local_input({2}), "z"); }, ErrorCode::kInvalidArgument,
                           {"no axis \"z\"", "manual_values_test.cc:"}));
  EXPECT_TRUE(throws_error([] { vary(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"[vary]", "is a full value"}));
}

TEST(AxisIndex, IsAScalarThatVaries) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  int calls = 0;
  manual(mesh, P("x"), P("x"), [&](const Tensor& x) {
    ++calls;
    EXPECT_EQ(axis_index("y").type(), (TensorType{DType::i32, {}}));
    EXPECT_EQ(varying(axis_index("y")), R"({"y"})");
    EXPECT_EQ(varying(axis_index({"y", "x"})), R"({"x", "y"})");
    EXPECT_TRUE(throws_error([] { axis_index("z"); }, ErrorCode::kInvalidArgument,
                             {"axis \"z\" is not manual here", "manual_values_test.cc:"}));
    return x;
  })(input({4}));
  EXPECT_EQ(calls, 1);
}

TEST(AxisIndex, CountsAlongTheAxesOfRegionsInsideOthers) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  int calls = 0;
  auto inner = manual(mesh, P("y"), P("y"),
                      [&](const Tensor& part) {
                        ++calls;
                        EXPECT_EQ(varying(axis_index("x")), R"({"x"})");
                        EXPECT_EQ(varying(axis_index({"y", "x"})), R"({"x", "y"})");
                        EXPECT_EQ(axis_index({"y", "x"}).type(), (TensorType{DType::i32, {}}));
                        return part;
                      },
                      {.axes = {"y"}});
  manual(mesh, P("x"), P("x"), inner, {.axes = {"x"}})(input({4}));
  EXPECT_EQ(calls, 1);
}

TEST(AxisIndex, IsOfTheRegionOfALocalValue) {
  EXPECT_EQ(varying(axis_index(local_input({2}), "y")), R"({"y"})");
  EXPECT_TRUE(throws_error([] { axis_index("x"); }, ErrorCode::kInvalidArgument,
                           {"[axis_index]", "manual()", "manual_values_test.cc:"}));
  EXPECT_TRUE(throws_error([] { axis_index(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"is a full value"}));
}

}  // namespace
}  // namespace meshard
