#include <gtest/gtest.h>

#include "meshard/sharding/op_sharding.h"

namespace meshard {
namespace {

TEST(ShardingType, HasTorchXlasNumbers) {
  EXPECT_EQ(static_cast<int>(ShardingType::kReplicated), 0);
  EXPECT_EQ(static_cast<int>(ShardingType::kMaximal), 1);
  EXPECT_EQ(static_cast<int>(ShardingType::kTuple), 2);
  EXPECT_EQ(static_cast<int>(ShardingType::kTiled), 3);
  EXPECT_EQ(static_cast<int>(ShardingType::kManual), 4);
  EXPECT_EQ(static_cast<int>(ShardingType::kPartial), 5);
  EXPECT_EQ(static_cast<int>(ShardingType::kUnknown), 6);
  EXPECT_EQ(to_string(ShardingType::kPartial), "PARTIAL");
}

TEST(ShardingType, OfASpecAlone) {
  EXPECT_EQ(sharding_type(P("x", none), 1), ShardingType::kMaximal);
  EXPECT_EQ(sharding_type(P(none, none), 8), ShardingType::kReplicated);
  EXPECT_EQ(sharding_type(P(), 8), ShardingType::kReplicated);
  EXPECT_EQ(sharding_type(P("x", none), 8), ShardingType::kPartial);
  EXPECT_EQ(sharding_type(P("x", "y"), 8), ShardingType::kTiled);
  EXPECT_EQ(sharding_type(P({"x", "y"}), 8), ShardingType::kTiled);
}

// The rule that torch_xla 2.9 applies to a 4 x 2 mesh, and the type that the compiler receives.
TEST(ShardingType, AsWrittenAndCanonical) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  auto both = [&](const PartitionSpec& spec) {
    Sharding s(mesh, spec);
    return std::pair(sharding_type(s), canonical_type(s));
  };
  using T = ShardingType;
  EXPECT_EQ(both(P("x", "y")), std::pair(T::kTiled, T::kTiled));
  EXPECT_EQ(both(P("x", none)), std::pair(T::kPartial, T::kPartial));
  EXPECT_EQ(both(P("x")), std::pair(T::kPartial, T::kPartial));
  EXPECT_EQ(both(P(none, none)), std::pair(T::kReplicated, T::kReplicated));
  EXPECT_EQ(both(P(none)), std::pair(T::kPartial, T::kReplicated));
  EXPECT_EQ(both(P({"x", "y"}, none)), std::pair(T::kPartial, T::kTiled));
  EXPECT_EQ(both(P()), std::pair(T::kReplicated, T::kReplicated));
  Sharding single(Mesh({{"x", 1}}), P("x"));
  EXPECT_EQ(sharding_type(single), T::kMaximal);
  EXPECT_EQ(canonical_type(single), T::kReplicated);
  EXPECT_EQ(sharding_type(Sharding(mesh, P("x")).with_unreduced({"y"})), T::kUnknown);
}

// An axis of size 1 counts as an axis that a spec leaves out, and as one that splits.
TEST(ShardingType, UnitAxes) {
  Mesh mesh({{"data", 8}, {"model", 1}});
  EXPECT_EQ(sharding_type(Sharding(mesh, P("data"))), ShardingType::kPartial);
  EXPECT_EQ(canonical_type(Sharding(mesh, P("data"))), ShardingType::kTiled);
  EXPECT_EQ(sharding_type(Sharding(mesh, P("data", "model"))), ShardingType::kTiled);
}

TEST(ShardingType, OfAnAssignment) {
  auto type = [](const char* text) { return sharding_type(TileAssignment::parse(text).value()); };
  EXPECT_EQ(type("{replicated}"), ShardingType::kReplicated);
  EXPECT_EQ(type("{maximal device=3}"), ShardingType::kMaximal);
  EXPECT_EQ(type("{manual}"), ShardingType::kManual);
  EXPECT_EQ(type("{unreduced}"), ShardingType::kUnknown);
  EXPECT_EQ(type("{devices=[2,2]<=[4]}"), ShardingType::kTiled);
  EXPECT_EQ(type("{devices=[2,2]<=[4] last_tile_dim_replicate}"), ShardingType::kPartial);
  EXPECT_EQ(type("{devices=[2,2]<=[4] last_tile_dims={replicated}}"), ShardingType::kPartial);
  EXPECT_EQ(type("{devices=[2,2]<=[4] last_tile_dims={manual}}"), ShardingType::kManual);
  EXPECT_EQ(type("{devices=[2,2]<=[4] last_tile_dims={unreduced}}"), ShardingType::kUnknown);
}

}  // namespace
}  // namespace meshard
