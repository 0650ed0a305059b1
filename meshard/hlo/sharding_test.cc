#include "meshard/hlo/sharding.h"

#include <gtest/gtest.h>

#include "meshard/hlo/mesh_bytes_testutil.h"

namespace meshard {
namespace {

using pjrt::WireWriter;
using test::axis;
using test::mesh;
using Numbers = std::vector<std::int64_t>;

WireWriter axis_list(const std::vector<WireWriter>& axes) {
  WireWriter list;
  for (const WireWriter& one : axes) list.add_message(1, one);
  return list;
}

WireWriter named_in(const WireWriter& named) {
  WireWriter sharding;
  sharding.add_message(14, named);
  return sharding;
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
  EXPECT_EQ(read(listed).tiles.elements()[0].device_list(), (Numbers{3, 1, 2, 0}));

  WireWriter iota;  // V2
  iota.add_varint(1, 3);
  iota.add_packed(3, Numbers{2, 1, 4});
  iota.add_varint(6, 1);
  iota.add_packed(9, Numbers{4, 2});
  iota.add_packed(10, Numbers{1, 0});
  EXPECT_EQ(read(iota).to_string(), "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(read(iota).tiles.elements()[0].device_list(), (Numbers{0, 2, 4, 6, 1, 3, 5, 7}));

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

TEST(HloSharding, ReadsNamedShardings) {
  WireWriter dimension, named, sharding;
  dimension = axis_list({axis(1), axis(0, 1, 2)});
  dimension.add_varint(2, 1);
  named.add_message(2, mesh({{"x", 4}, {"y", 2}}));
  named.add_message(3, dimension);
  named.add_message(3, WireWriter());
  named.add_message(4, axis(0, 2, 2));
  sharding.add_message(14, named);
  // y, then the first half of x; the device is 2 x + y.
  EXPECT_EQ(read(sharding).to_string(), "{devices=[4,1,2]<=[4,2]T(1,0) last_tile_dim_replicate}");
  Mesh xy({{"x", 4}, {"y", 2}});
  ASSERT_EQ(read(sharding).named.size(), 1u);
  EXPECT_EQ(read(sharding).named[0], Sharding(xy, P({"y", AxisRef("x", 1, 2)}, none)));

  named.add_message(3, axis_list({axis(7)}));
  WireWriter missing;
  missing.add_message(14, named);
  EXPECT_FALSE(HloSharding::from_bytes(missing.bytes()).ok());
}

TEST(HloSharding, NamedShardingsOverListedDevicesAndInTuples) {
  WireWriter named, scalar, tuple, sharding;
  named.add_message(2, mesh({{"a b", 2}}, {1, 0}));
  named.add_message(3, axis_list({axis(0)}));
  tuple.add_message(1, named);
  tuple.add_message(1, scalar);
  sharding.add_message(14, tuple);
  EXPECT_EQ(read(sharding).to_string(), "{{devices=[2]1,0}, {replicated}}");
  EXPECT_EQ(read(sharding).of_values(2)[0].to_string(), "{devices=[2]1,0}");
  EXPECT_EQ(read(sharding).of_values(2)[0].named.size(), 1u);
  EXPECT_EQ(read(named_in(named)).of_values(2)[1].to_string(), "{devices=[2]1,0}");
}

}  // namespace
}  // namespace meshard
