#include "meshard/explain/collectives/slice_numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/sharding/replica_groups.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

const Topology kTwoSlices = tpu_topology("v5e:2x2*2").value();
using Groups = SliceNumbering::Groups;

HloModule module_for(std::size_t devices) {
  HloModule module;
  for (std::size_t i = 0; i < devices; ++i)
    module.device_assignment.push_back({static_cast<std::int64_t>(i)});
  return module;
}

// Slices along the first axis: positions 0 to 3 and 4 to 7.
TEST(SliceNumbering, SlicesAlongTheFirstAxis) {
  Mesh mesh = hybrid_mesh(kTwoSlices, {2, 2}, {2, 1}, {{"data", "model"}});
  SliceNumbering slices = *SliceNumbering::of(module_for(4), mesh, kTwoSlices);
  EXPECT_EQ(slices.positions(Groups{{0, 1}, {2, 3}}).value(),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(slices.positions(Groups{}).value(), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(slices.across(), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(axes_of_groups(mesh, slices.across()), AxisList{AxisRef("data", 1, 2)});
  EXPECT_EQ(axes_of_groups(mesh, slices.positions(Groups{{0, 2}, {1, 3}}).value()),
            AxisList{AxisRef("data", 2, 2)});
}

// Slices along the second axis: each row of four has two positions of each slice.
TEST(SliceNumbering, SlicesAlongTheSecondAxis) {
  Mesh mesh = hybrid_mesh(kTwoSlices, {2, 2}, {1, 2}, {{"data", "model"}});
  SliceNumbering slices = *SliceNumbering::of(module_for(4), mesh, kTwoSlices);
  EXPECT_EQ(slices.positions(Groups{{0, 1}}).value(), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(slices.across(), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(axes_of_groups(mesh, slices.positions(Groups{{0, 2}, {1, 3}}).value()),
            AxisList{AxisRef("data")});
  EXPECT_THAT(slices.positions(Groups{{0, 2}}).value(),
              ElementsAre(ElementsAre(0, 4), ElementsAre(2, 6)));
}

TEST(SliceNumbering, PairsOfAllSlices) {
  Mesh mesh = hybrid_mesh(kTwoSlices, {4}, {2}, {{"x"}});
  SliceNumbering slices = *SliceNumbering::of(module_for(4), mesh, kTwoSlices);
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs = {{0, 1}, {3, 0}};
  EXPECT_THAT(slices.positions(pairs).value(),
              ElementsAre(Pair(0, 1), Pair(3, 0), Pair(4, 5), Pair(7, 4)));
}

TEST(SliceNumbering, OnlyForAModuleOfOneSliceOfSeveral) {
  Mesh mesh = hybrid_mesh(kTwoSlices, {4}, {2}, {{"x"}});
  EXPECT_FALSE(SliceNumbering::of(module_for(8), mesh, kTwoSlices));
  Topology one = tpu_topology("v5e:2x2").value();
  EXPECT_FALSE(SliceNumbering::of(module_for(4), torus_mesh(one, {4}), one));
}

TEST(SliceNumbering, RefusesNumbersThatASliceDoesNotHave) {
  Mesh mesh = hybrid_mesh(kTwoSlices, {4}, {2}, {{"x"}});
  SliceNumbering slices = *SliceNumbering::of(module_for(4), mesh, kTwoSlices);
  EXPECT_EQ(slices.positions(Groups{{4}}).error().code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(slices.positions(Groups{{-1}}).error().code(), ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace meshard
