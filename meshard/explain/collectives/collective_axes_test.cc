#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/sharding/replica_groups.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

const Mesh kMesh({{"data", 2}, {"model", 4}});

HloInstruction all_reduce(ReplicaGroups groups) {
  HloInstruction one;
  one.opcode = "all-reduce";
  one.channel_id = 1;
  one.use_global_device_ids = true;
  one.groups = std::move(groups);
  return one;
}

InstructionAxes axes_of(const HloInstruction& instruction) {
  return axes_of_instruction(instruction, kMesh).value();
}

TEST(InstructionAxes, ListedGroups) {
  InstructionAxes data = axes_of(all_reduce(listed_groups({{0, 4}, {1, 5}, {2, 6}, {3, 7}})));
  EXPECT_EQ(data.axes, AxisList({"data"}));
  EXPECT_EQ(data.group_size, 2);
  InstructionAxes model = axes_of(all_reduce(listed_groups({{0, 1, 2, 3}, {4, 5, 6, 7}})));
  EXPECT_EQ(model.axes, AxisList({"model"}));
  EXPECT_EQ(model.group_size, 4);
  InstructionAxes both = axes_of(all_reduce(listed_groups({{0, 1, 2, 3, 4, 5, 6, 7}})));
  EXPECT_EQ(both.axes, AxisList({"data", "model"}));
  EXPECT_EQ(both.group_size, 8);
}

TEST(InstructionAxes, PartOfAnAxis) {
  InstructionAxes inner = axes_of(all_reduce(listed_groups({{0, 1}, {2, 3}, {4, 5}, {6, 7}})));
  EXPECT_EQ(inner.axes, AxisList({AxisRef("model", 2, 2)}));
  EXPECT_EQ(inner.group_size, 2);
}

TEST(InstructionAxes, GroupsOfNoAxes) {
  InstructionAxes odd = axes_of(all_reduce(listed_groups({{0, 5}, {1, 4}, {2, 7}, {3, 6}})));
  EXPECT_EQ(odd.axes, std::nullopt);
  EXPECT_EQ(odd.group_size, 2);
}

TEST(InstructionAxes, IotaGroups) {
  // [4,2]<=[2,4]T(1,0): {0,4},{1,5},{2,6},{3,7}
  IotaGroups data{.count = 4, .group_size = 2, .reshape_dims = {2, 4}, .transpose_perm = {1, 0}};
  EXPECT_EQ(axes_of(all_reduce({.iota = data})).axes, AxisList({"data"}));
  EXPECT_EQ(axes_of(all_reduce({.iota = data})).group_size, 2);
  // [2,4]<=[8]: {0,1,2,3},{4,5,6,7}
  IotaGroups model{.count = 2, .group_size = 4, .reshape_dims = {8}, .transpose_perm = {0}};
  EXPECT_EQ(axes_of(all_reduce({.iota = model})).axes, AxisList({"model"}));
  // [4,2]<=[2,2,2]T(0,2,1): {0,2},{1,3},{4,6},{5,7}
  IotaGroups part{
      .count = 4, .group_size = 2, .reshape_dims = {2, 2, 2}, .transpose_perm = {0, 2, 1}};
  EXPECT_EQ(axes_of(all_reduce({.iota = part})).axes, AxisList({AxisRef("model", 1, 2)}));
  EXPECT_EQ(axes_of(all_reduce({.iota = part})).group_size, 2);
}

TEST(InstructionAxes, WithoutGroupsAChannelJoinsAllDevices) {
  EXPECT_EQ(axes_of(all_reduce({})).axes, AxisList({"data", "model"}));
  EXPECT_EQ(axes_of(all_reduce({})).group_size, 8);
  HloInstruction replicas = all_reduce(listed_groups({{0}}));
  replicas.use_global_device_ids = false;  // one replica with all its partitions
  EXPECT_EQ(axes_of(replicas).axes, AxisList({"data", "model"}));
  replicas.channel_id = 0;  // one replica per group
  EXPECT_EQ(axes_of(replicas).axes, AxisList());
  EXPECT_EQ(axes_of(replicas).group_size, 1);
}

TEST(InstructionAxes, AllToAllNeedsNoFlag) {
  HloInstruction one = all_reduce(listed_groups({{0, 1, 2, 3}, {4, 5, 6, 7}}));
  one.opcode = "all-to-all";
  one.use_global_device_ids = false;
  EXPECT_EQ(axes_of(one).axes, AxisList({"model"}));
}

TEST(InstructionAxes, PositionsNotDeviceIds) {
  Mesh sparse({{"data", 2}, {"model", 2}}, {70, 10, 30, 20});
  Result<InstructionAxes> axes =
      axes_of_instruction(all_reduce(listed_groups({{0, 2}, {1, 3}})), sparse);
  EXPECT_EQ(axes.value().axes, AxisList({"data"}));
}

TEST(Permutation, ShiftsAlongOneAxis) {
  InstructionAxes next = axes_of_permutation(
      kMesh, Pairs{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4, 5}, {5, 6}, {6, 7}, {7, 4}});
  EXPECT_EQ(next.axes, AxisList({"model"}));
  EXPECT_EQ(next.shifts, (std::vector<AxisShift>{{{"model"}, +1, true}}));
  InstructionAxes before = axes_of_permutation(
      kMesh, Pairs{{0, 3}, {1, 0}, {2, 1}, {3, 2}, {4, 7}, {5, 4}, {6, 5}, {7, 6}});
  EXPECT_EQ(before.shifts, (std::vector<AxisShift>{{{"model"}, -1, true}}));
}

TEST(Permutation, WithoutWrapping) {
  InstructionAxes next =
      axes_of_permutation(kMesh, Pairs{{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 7}});
  EXPECT_EQ(next.shifts, (std::vector<AxisShift>{{{"model"}, +1, false}}));
  EXPECT_EQ(next.shifts[0].to_string(), "\"model\" by +1 without wrapping");
}

TEST(Permutation, AlongTwoAxesAtOnce) {
  Pairs pairs;
  for (std::int64_t d = 0; d < 2; ++d)
    for (std::int64_t m = 0; m < 4; ++m) pairs.push_back({d * 4 + m, (1 - d) * 4 + (m + 3) % 4});
  InstructionAxes moved = axes_of_permutation(kMesh, pairs);
  EXPECT_EQ(moved.axes, AxisList({"data", "model"}));
  EXPECT_EQ(moved.shifts, (std::vector<AxisShift>{{{"data"}, +1, true}, {{"model"}, -1, true}}));
}

TEST(Permutation, RingOverBothAxesTakenAsOne) {
  Pairs pairs;
  for (std::int64_t i = 0; i < 8; ++i) pairs.push_back({i, (i + 1) % 8});
  InstructionAxes ring = axes_of_permutation(kMesh, pairs);
  EXPECT_EQ(ring.axes, AxisList({"data", "model"}));
  EXPECT_EQ(ring.shifts, (std::vector<AxisShift>{{{"data", "model"}, +1, true}}));
}

TEST(Permutation, NoCommonShift) {
  // Sends position (d, m) of 2x4 to position (m, d) of 4x2.
  InstructionAxes transposed = axes_of_permutation(
      kMesh, Pairs{{0, 0}, {1, 4}, {2, 1}, {3, 5}, {4, 2}, {5, 6}, {6, 3}, {7, 7}});
  EXPECT_EQ(transposed.axes, AxisList({"data", "model"}));
  EXPECT_TRUE(transposed.shifts.empty());
}

TEST(Permutation, NumbersOutsideTheMesh) {
  EXPECT_EQ(axes_of_permutation(kMesh, Pairs{{0, 8}}).axes, std::nullopt);
  EXPECT_EQ(axes_of_permutation(kMesh, Pairs{{-1, 0}}).axes, std::nullopt);
}

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
