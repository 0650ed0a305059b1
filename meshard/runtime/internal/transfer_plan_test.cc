#include "meshard/runtime/internal/transfer_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "meshard/array/host_array.h"
#include "meshard/runtime/tiles.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

// A mesh of one or two axes over some of 12 devices, in any order.
Mesh random_mesh(TestRandom& random, const char* first, const char* second) {
  std::vector<std::int64_t> ids(12);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random);
  std::int64_t rows = random.between(1, 4), columns = random.between(1, 3);
  ids.resize(static_cast<std::size_t>(rows * columns));
  return Mesh({{first, rows}, {second, columns}}, ids);
}

Sharding random_sharding(TestRandom& random, const Mesh& mesh, std::size_t rank) {
  std::vector<AxisList> axes(rank);
  for (const MeshAxis& axis : mesh.axes())
    if (std::int64_t d = random.between(0, static_cast<std::int64_t>(rank));
        d < static_cast<std::int64_t>(rank))
      axes[static_cast<std::size_t>(d)].push_back(AxisRef(axis.name));
  std::vector<DimensionSpec> dimensions;
  for (AxisList& each : axes) dimensions.emplace_back(std::move(each));
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

TransferPlan whole_plan(const Sharding& source, const Sharding& target, const Shape& shape) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(target.mesh().size()));
  std::iota(positions.begin(), positions.end(), 0);
  return plan_transfer(source, target, shape, positions);
}

// The indices of all elements of a box, in row-major order.
std::vector<std::vector<std::int64_t>> elements_of(const Box& box) {
  std::vector<std::vector<std::int64_t>> all{{}};
  for (const DimensionSlice& part : box) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const auto& prefix : all)
      for (std::int64_t i = part.start; i < part.stop; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

TEST(TransferPlan, EveryElementOfEveryTileComesOnceFromADeviceThatHasIt) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    const auto rank = static_cast<std::size_t>(random.between(0, 3));
    Dimensions sizes;
    for (std::size_t d = 0; d < rank; ++d) sizes.push_back(random.between(1, 9));
    const Shape shape(sizes);
    const Sharding source = random_sharding(random, random_mesh(random, "a", "b"), rank);
    const Sharding target = random_sharding(random, random_mesh(random, "r", "c"), rank);
    SCOPED_TRACE(cat(shape, " from ", source, " to ", target));
    const TransferPlan plan = whole_plan(source, target, shape);
    ASSERT_EQ(std::ssize(plan.tiles), target.mesh().size());
    const Shape shard = shard_type_of({DType::f32, shape}, source).shape;
    for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
      const TransferPlan::Tile& tile = plan.tiles[static_cast<std::size_t>(p)];
      std::vector<std::vector<std::int64_t>> found;
      std::set<std::int64_t> senders;
      for (const TransferPlan::Piece& piece : tile.pieces) {
        const Box& cut = plan.cuts[static_cast<std::size_t>(piece.source)][piece.number];
        check_box(cut, shard);
        const Box own = box_of(source, shape, piece.source);
        for (std::vector<std::int64_t> element : elements_of(cut)) {
          for (std::size_t d = 0; d < rank; ++d) element[d] += own[d].start;
          found.push_back(std::move(element));
        }
        senders.insert(piece.source);
      }
      std::vector<std::vector<std::int64_t>> wanted = elements_of(box_of(target, shape, p));
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, wanted) << "at position " << p;
      std::int64_t grid = 1;
      for (std::int64_t count : tile.grid) grid *= count;
      EXPECT_EQ(grid, std::ssize(tile.pieces));
      // What a device has is not sent to it.
      auto there = source.mesh().position(target.mesh().device_id(p));
      Box both = there ? box_of(source, shape, *there) : Box();
      bool has_part = there && !tile.pieces.empty();
      for (std::size_t d = 0; has_part && d < rank; ++d) {
        Box box = box_of(target, shape, p);
        has_part = std::max(both[d].start, box[d].start) < std::min(both[d].stop, box[d].stop);
      }
      if (has_part) {
        EXPECT_TRUE(senders.contains(*there)) << "at position " << p;
      }
    }
    for (const auto& boxes : plan.cuts)
      for (std::size_t i = 0; i < boxes.size(); ++i)
        EXPECT_EQ(
            std::find(boxes.begin() + static_cast<std::ptrdiff_t>(i) + 1, boxes.end(), boxes[i]),
            boxes.end());
  }
}

TEST(TransferPlan, ReplicasTakeTurns) {
  const Sharding source(Mesh({{"copy", 3}}), P(none));
  const Sharding target(Mesh({{"x", 6}}, {3, 4, 5, 6, 7, 8}), P("x"));
  const TransferPlan plan = whole_plan(source, target, {12});
  for (const auto& boxes : plan.cuts) EXPECT_EQ(boxes.size(), 2u);
}

TEST(TransferPlan, OnlyWhatTheGivenPositionsNeedIsCut) {
  const Sharding source(Mesh({{"x", 2}}), P("x")), target(Mesh({{"y", 4}}, {4, 5, 6, 7}), P("y"));
  const std::vector<std::int64_t> positions{1, 2};
  const TransferPlan plan = plan_transfer(source, target, {8}, positions);
  EXPECT_EQ(plan.cuts, (std::vector<std::vector<Box>>{{Box{{2, 4}}}, {Box{{0, 2}}}}));
  ASSERT_EQ(plan.tiles.size(), 2u);
  EXPECT_EQ(plan.tiles[0].pieces[0], (TransferPlan::Piece{0, 0}));
  EXPECT_EQ(plan.tiles[1].pieces[0], (TransferPlan::Piece{1, 0}));
}

TEST(TransferPlan, NestedShardingsSplitWhatTheTargetSplitsMore) {
  const Mesh source({{"a", 4}, {"b", 3}});
  const auto nested = [&](const Sharding& target) {
    return nested_for(Sharding(source, P("a", "b")), target).spec();
  };
  EXPECT_EQ(nested(Sharding(Mesh({{"r", 8}}), P("r", none))), P("a", none));
  EXPECT_EQ(nested(Sharding(Mesh({{"r", 3}, {"c", 4}}), P("r", "c"))), P("b", "a"));
  EXPECT_EQ(nested(Sharding(Mesh({{"r", 12}}), P(none, "r"))), P(none, axes("a", "b")));
  EXPECT_EQ(nested(Sharding(Mesh({{"r", 7}}), P("r", none))), P(none, none));
}

}  // namespace
}  // namespace meshard
