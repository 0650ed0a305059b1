#include "meshard/hlo/sharding.h"

#include <gtest/gtest.h>

#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using pjrt::WireWriter;
using Numbers = std::vector<std::int64_t>;

TEST(IotaOrder, TransposesTheNumbers) {
  EXPECT_EQ((IotaOrder{{2, 3}, {1, 0}}.expand().value()), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ((IotaOrder{{2, 3}, {}}.expand().value()), (Numbers{0, 1, 2, 3, 4, 5}));
  // [2,2,2] with the middle dimension moved to the front: (b, a, c) in order, numbered 4a + 2b + c.
  EXPECT_EQ((IotaOrder{{2, 2, 2}, {1, 0, 2}}.expand().value()), (Numbers{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_FALSE((IotaOrder{{2, 3}, {0, 0}}.expand().ok()));
  EXPECT_FALSE((IotaOrder{{2, 3}, {0, 2}}.expand().ok()));
  EXPECT_FALSE((IotaOrder{{1 << 20, 1 << 20}, {}}.expand().ok()));
}

HloSharding read(const WireWriter& writer) {
  return HloSharding::from_bytes(writer.bytes()).value();
}

TEST(HloSharding, ReadsBothFormsOfTheDevices) {
  WireWriter listed;  // V1
  listed.add_varint(1, 3);
  listed.add_packed(3, Numbers{2, 2});
  listed.add_packed(4, Numbers{3, 1, 2, 0});
  EXPECT_EQ(read(listed).to_string(), "{devices=[2,2]3,1,2,0}");
  EXPECT_EQ(read(listed).devices().value(), (Numbers{3, 1, 2, 0}));

  WireWriter iota;  // V2
  iota.add_varint(1, 3);
  iota.add_packed(3, Numbers{2, 1, 4});
  iota.add_varint(6, 1);
  iota.add_packed(9, Numbers{4, 2});
  iota.add_packed(10, Numbers{1, 0});
  EXPECT_EQ(read(iota).to_string(), "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(read(iota).devices().value(), (Numbers{0, 2, 4, 6, 1, 3, 5, 7}));

  WireWriter subgroups;
  subgroups.add_varint(1, 3);
  subgroups.add_packed(3, Numbers{1, 2, 2});
  subgroups.add_packed(8, Numbers{4, 0});
  subgroups.add_packed(9, Numbers{4});
  EXPECT_EQ(read(subgroups).to_string(),
            "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}");
}

TEST(HloSharding, ReadsTheSimpleKindsAndTuples) {
  WireWriter maximal;
  maximal.add_varint(1, 1);
  maximal.add_packed(4, Numbers{5});
  WireWriter tuple;
  tuple.add_varint(1, 2);
  tuple.add_message(5, maximal);
  tuple.add_message(5, WireWriter());
  EXPECT_EQ(read(tuple).to_string(), "{{maximal device=5}, {replicated}}");
  WireWriter manual;
  manual.add_varint(1, 4);
  EXPECT_EQ(read(manual).to_string(), "{manual}");
  EXPECT_FALSE(HloSharding::from_bytes("\x1a\x05").ok());
}

WireWriter axis(std::uint64_t index, int pre = 0, int size = 0) {
  WireWriter ref;
  if (index != 0) ref.add_varint(1, index);
  if (size == 0) return ref;
  WireWriter part;
  part.add_varint(1, static_cast<std::uint64_t>(pre));
  part.add_varint(2, static_cast<std::uint64_t>(size));
  ref.add_message(2, part);
  return ref;
}

WireWriter mesh(const std::vector<std::pair<std::string, int>>& axes, const Numbers& ids = {}) {
  WireWriter writer;
  for (const auto& [name, size] : axes) {
    WireWriter one;
    one.add_bytes(1, name);
    one.add_varint(2, static_cast<std::uint64_t>(size));
    writer.add_message(1, one);
  }
  writer.add_packed(2, ids);
  return writer;
}

TEST(HloSharding, ReadsNamedShardings) {
  WireWriter dimension, named, sharding;
  dimension.add_message(1, axis(1));
  dimension.add_message(1, axis(0, 1, 2));
  dimension.add_varint(2, 1);
  named.add_message(2, mesh({{"x", 4}, {"y", 2}}));
  named.add_message(3, dimension);
  named.add_message(3, WireWriter());
  named.add_message(4, axis(0, 2, 2));
  sharding.add_message(14, named);
  HloSharding read_back = read(sharding);
  ASSERT_TRUE(read_back.named.has_value());
  const HloNamedSharding& got = *read_back.named;
  EXPECT_EQ(got.mesh.axes[0], (HloMesh::Axis{"x", 4}));
  ASSERT_EQ(got.dimensions.size(), 2u);
  EXPECT_TRUE(got.dimensions[0].is_closed);
  EXPECT_EQ(got.dimensions[0].axes[0].axis, 1);
  EXPECT_EQ(got.dimensions[0].axes[1].part->size, 2);
  EXPECT_FALSE(got.dimensions[1].is_closed);
  EXPECT_EQ(got.replicated[0].part->pre_size, 2);
}

// ---- replica groups ----------------------------------------------------------------------------

using Groups = std::vector<Numbers>;

ReplicaGroups over(HloMesh of, std::vector<HloAxisRef> axes) {
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kMeshAxes;
  groups.mesh = std::move(of);
  groups.axes = std::move(axes);
  return groups;
}

TEST(ReplicaGroups, IotaFormIsCutIntoGroups) {
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kIota;
  groups.group_count = 2;
  groups.group_size = 4;
  groups.iota = {{4, 2}, {1, 0}};
  EXPECT_EQ(groups.expand().value(), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  groups.group_size = 3;
  EXPECT_FALSE(groups.expand().ok());
}

TEST(ReplicaGroups, MeshAxesFormFollowsTheAxesInTheirOrder) {
  HloMesh xy{{{"x", 2}, {"y", 4}}, {}, false};  // device = 4 x + y
  EXPECT_EQ(over(xy, {{1, {}}}).expand().value(), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(over(xy, {{0, {}}}).expand().value(), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(over(xy, {{1, {}}, {0, {}}}).expand().value(), (Groups{{0, 4, 1, 5, 2, 6, 3, 7}}));
  // y = 2 major + minor; groups over the minor part, then over the major one.
  HloAxisRef minor{1, HloAxisRef::Part{2, 2}}, major{1, HloAxisRef::Part{1, 2}};
  EXPECT_EQ(over(xy, {minor}).expand().value(), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(over(xy, {major}).expand().value(), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  HloMesh moved{{{"x", 2}}, {5, 3}, false};
  EXPECT_EQ(over(moved, {{0, {}}}).expand().value(), (Groups{{5, 3}}));
  HloMesh unknown{{{"x", 2}}, {}, true};
  EXPECT_EQ(over(unknown, {{0, {}}}).expand().error().code(), ErrorCode::kUnimplemented);
  EXPECT_FALSE(over(xy, {{7, {}}}).expand().ok());
  EXPECT_FALSE(over(xy, {{1, HloAxisRef::Part{4, 2}}}).expand().ok());
}

}  // namespace
}  // namespace meshard
