#include "meshard/sharding/tile_assignment.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(TileAssignment, TheIotaFormListsDevices) {
  TileAssignment tiles = TileAssignment::parse("{devices=[2,3]<=[3,2]T(1,0)}").value();
  EXPECT_EQ(tiles.device_list(), (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(tiles.listed().to_string(), "{devices=[2,3]0,2,4,1,3,5}");
  EXPECT_EQ(tiles.rank(), 2u);
}

TEST(TileAssignment, OfShardings) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  auto text = [&](const PartitionSpec& spec) {
    return tile_assignment(Sharding(mesh, spec)).to_string();
  };
  EXPECT_EQ(text(P("x", "y")), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(text(P("y", "x")), "{devices=[4,2]<=[2,4]T(1,0)}");
  EXPECT_EQ(text(P("y", none)), "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(text(P(none, none)), "{replicated}");
  EXPECT_EQ(text(P({{"y", 2, 2}})), "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(tile_assignment(Sharding(mesh, P("x")).with_unreduced({"y"})).to_string(),
            "{devices=[2,4]<=[8] last_tile_dims={unreduced}}");
  EXPECT_EQ(tile_assignment(Sharding(mesh, P(none)).with_unreduced({"x", "y"})).to_string(),
            "{unreduced}");
}

// Reshaped to the sizes of the mesh, and transposed to the order of the axes in the spec.
TEST(TileAssignment, AxisByAxis) {
  Mesh mesh({{"x", 2}, {"unit", 1}, {"y", 4}});
  auto text = [&](const PartitionSpec& spec) {
    return axis_tile_assignment(Sharding(mesh, spec)).to_string();
  };
  EXPECT_EQ(text(P("x", "y")), "{devices=[2,4]<=[2,1,4]T(0,2,1)}");
  EXPECT_EQ(text(P("y", "unit")), "{devices=[4,1,2]<=[2,1,4]T(2,1,0) last_tile_dim_replicate}");
  EXPECT_EQ(text(P(none)), "{devices=[1,8]<=[2,1,4] last_tile_dim_replicate}");
  EXPECT_EQ(text(P({{"y", 2, 2}})), "{devices=[2,4]<=[2,1,2,2]T(3,0,1,2) last_tile_dim_replicate}");
  EXPECT_EQ(axis_tile_assignment(Sharding(Mesh({{"x", 1}}), P("x"))).to_string(),
            "{devices=[1]<=[1]}");
  EXPECT_EQ(axis_tile_assignment(Sharding(Mesh({{"x", 1}}), P())).to_string(), "{replicated}");
}

TEST(TileAssignment, ValidateRefusesMixtures) {
  TileAssignment both{.kind = TileKind::kTiled,
                      .dims = {2},
                      .devices = {0, 1},
                      .reshape_dims = {2},
                      .transpose_perm = {0}};
  EXPECT_FALSE(both.validate().ok());
  TileAssignment neither{.kind = TileKind::kTiled, .dims = {2}};
  EXPECT_FALSE(neither.validate().ok());
  TileAssignment replicated{.kind = TileKind::kReplicated, .dims = {2}};
  EXPECT_FALSE(replicated.validate().ok());
  TileAssignment nowhere{.kind = TileKind::kMaximal};
  EXPECT_FALSE(nowhere.validate().ok());
  TileAssignment few{.kind = TileKind::kTiled,
                     .dims = {2},
                     .devices = {0, 1},
                     .last_tile_dims = {TileKind::kManual, TileKind::kManual}};
  EXPECT_FALSE(few.validate().ok());
}

}  // namespace
}  // namespace meshard
