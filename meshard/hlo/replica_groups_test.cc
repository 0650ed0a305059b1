#include <gtest/gtest.h>

#include "meshard/hlo/internal/reader.h"
#include "meshard/hlo/mesh_bytes_testutil.h"
#include "meshard/hlo/sharding.h"

namespace meshard {
namespace {

using pjrt::WireWriter;
using test::axis;
using Numbers = std::vector<std::int64_t>;
using Groups = std::vector<Numbers>;

Result<ReplicaGroups> read_over(const WireWriter& mesh, const std::vector<WireWriter>& axes) {
  WireWriter bytes;
  bytes.add_message(1, mesh);
  for (const WireWriter& one : axes) bytes.add_message(2, one);
  return internal::read_mesh_axes_list(bytes.bytes());
}

TEST(ReplicaGroups, IotaFormIsCutIntoGroups) {
  ReplicaGroups groups{
      .iota = IotaGroups{
          .count = 2, .group_size = 4, .reshape_dims = {4, 2}, .transpose_perm = {1, 0}}};
  EXPECT_EQ(groups.expand().value(), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  groups.iota->group_size = 3;
  EXPECT_FALSE(groups.expand().ok());
  groups.iota =
      IotaGroups{.count = 2, .group_size = 3, .reshape_dims = {2, 3}, .transpose_perm = {}};
  for (Numbers damaged : {Numbers{0, 0}, Numbers{0, 2}, Numbers{0}}) {
    groups.iota->transpose_perm = damaged;
    EXPECT_FALSE(groups.expand().ok());
  }
  groups.iota = IotaGroups{.count = 1 << 20,
                           .group_size = 1 << 20,
                           .reshape_dims = {1 << 20, 1 << 20},
                           .transpose_perm = {0, 1}};
  EXPECT_FALSE(groups.expand().ok());
}

TEST(ReplicaGroups, WithoutAPermutationTheNumbersAreInOrder) {
  WireWriter bytes;
  bytes.add_varint(1, 2);
  bytes.add_varint(2, 3);
  bytes.add_packed(3, Numbers{2, 3});
  ReplicaGroups groups = internal::read_iota_list(bytes.bytes()).value();
  EXPECT_EQ(groups.expand().value(), (Groups{{0, 1, 2}, {3, 4, 5}}));
}

TEST(ReplicaGroups, MeshAxesFormFollowsTheAxesInTheirOrder) {
  WireWriter xy = test::mesh({{"x", 2}, {"y", 4}});  // device = 4 x + y
  auto over = [&](const std::vector<WireWriter>& axes) {
    return read_over(xy, axes).value().expand().value();
  };
  EXPECT_EQ(over({axis(1)}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(over({axis(0)}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(over({axis(1), axis(0)}), (Groups{{0, 4, 1, 5, 2, 6, 3, 7}}));
  // y = 2 major + minor; groups over the minor part, then over the major one.
  EXPECT_EQ(over({axis(1, 2, 2)}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(over({axis(1, 1, 2)}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(read_over(test::mesh({{"x", 2}}, {1, 0}), {axis(0)}).value().expand().value(),
            (Groups{{1, 0}}));
  EXPECT_EQ(read_over(test::mesh({}), {}).value().expand().value(), (Groups{{0}}));
  EXPECT_FALSE(read_over(xy, {axis(7)}).ok());
  EXPECT_FALSE(read_over(xy, {axis(1, 4, 2)}).ok());
}

TEST(ReplicaGroups, MeshAxesFormHasTheAxesOfAMeshAlikeInSize) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto axes_over = [&](const WireWriter& of, const std::vector<WireWriter>& axes) {
    return axes_of_groups(mesh, *read_over(of, axes).value().iota);
  };
  WireWriter same = test::mesh({{"data", 2}, {"model", 4}});
  EXPECT_EQ(axes_over(same, {axis(1)}), AxisList({"model"}));
  EXPECT_EQ(axes_over(same, {axis(1, 1, 2)}), AxisList({AxisRef("model", 1, 2)}));
  // {0,1,2,3},{4,5,6,7}
  EXPECT_EQ(axes_over(test::mesh({{"a", 8}}), {axis(0, 2, 4)}), AxisList({"model"}));
}

TEST(ReplicaGroups, AnUnknownDeviceOrderIsAnError) {
  WireWriter unknown = test::mesh({{"x", 2}});
  unknown.add_bytes(3, "");
  EXPECT_EQ(read_over(unknown, {axis(0)}).error().code(), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace meshard
