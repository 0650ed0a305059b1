#include "meshard/explain/process_map.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

Topology cpus(std::int64_t count) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < count; ++i) devices.push_back({.id = i});
  return Topology(std::move(devices));
}

ProcessMap halves() { return ProcessMap::divided(cpus(8), 2).value(); }

Collective moving(AxisList axes, std::int64_t by, bool wraps = true) {
  Collective one;
  one.kind = CollectiveKind::kCollectivePermute;
  one.axes = axes;
  one.shifts = {{.axes = std::move(axes), .by = by, .wraps = wraps}};
  return one;
}

// Devices 0 to 3 are in process 0, 4 to 7 in process 1.
TEST(ProcessMap, AxesThatCross) {
  Mesh rows({{"data", 2}, {"model", 4}});  // the rows are the processes
  EXPECT_EQ(halves().of_mesh(rows), (MeshProcesses{2, {"data"}}));
  Mesh columns({{"data", 4}, {"model", 2}});  // 0 1, 2 3, 4 5, 6 7
  EXPECT_EQ(halves().of_mesh(columns), (MeshProcesses{2, {"data"}}));
  EXPECT_TRUE(halves().crosses(columns, {"data", "model"}));
  Mesh interleaved({{"a", 2}, {"b", 4}}, {0, 4, 1, 5, 2, 6, 3, 7});
  EXPECT_EQ(halves().of_mesh(interleaved), (MeshProcesses{2, {"b"}}));
  Mesh inside({{"a", 2}, {"b", 2}});  // 0 to 3
  EXPECT_EQ(halves().of_mesh(inside), (MeshProcesses{1, {}}));
  // One group of the two crosses: 0 1 and 2 4.
  EXPECT_TRUE(halves().crosses(Mesh({{"a", 2}, {"b", 2}}, {0, 1, 2, 4}), {"b"}));
}

TEST(ProcessMap, TheTopologysOwn) {
  std::vector<DeviceAttributes> devices;
  for (std::int64_t i = 0; i < 4; ++i) devices.push_back({.id = 10 + i, .process_index = i % 2});
  ProcessMap map = ProcessMap::of(Topology(devices));
  EXPECT_EQ(map.count(), 2);
  EXPECT_EQ(map.process_of(13), 1);
  EXPECT_EQ(map.process_of(3), std::nullopt);
  EXPECT_EQ(map.of_mesh(Mesh({{"a", 2}, {"b", 2}}, {10, 11, 12, 13})), (MeshProcesses{2, {"b"}}));
}

TEST(ProcessMap, SendersOfAPermutation) {
  Mesh line({{"x", 8}});
  // 3 sends to 4, and 7 to 0.
  EXPECT_EQ(halves().most_senders(line, moving({"x"}, 1).shifts[0]), 1);
  EXPECT_EQ(halves().most_senders(line, moving({"x"}, 3).shifts[0]), 3);
  Mesh interleaved({{"x", 8}}, {0, 4, 1, 5, 2, 6, 3, 7});
  EXPECT_EQ(halves().most_senders(interleaved, moving({"x"}, 1).shifts[0]), 4);
  EXPECT_FALSE(halves().crosses(interleaved, moving({"x"}, 2)));
  EXPECT_TRUE(halves().crosses(line, moving({"x"}, 2)));
  // Pairs in a process: 0 1, 2 3, ...
  Mesh pairs({{"data", 4}, {"model", 2}});
  EXPECT_FALSE(halves().crosses(pairs, moving({"model"}, 1)));
  // 7 is the last, and sends nothing; 3 sends to 4.
  EXPECT_EQ(halves().most_senders(line, moving({"x"}, 1, false).shifts[0]), 1);
}

TEST(ProcessMap, GroupsOfNoAxes) {
  Collective one;
  one.group_size = 4;
  EXPECT_FALSE(halves().crosses(Mesh({{"x", 8}}), one));
  one.group_size = 8;
  EXPECT_TRUE(halves().crosses(Mesh({{"x", 8}}), one));
  one.axes = AxisList{};
  EXPECT_FALSE(halves().crosses(Mesh({{"x", 8}}), one));
}

TEST(ProcessMap, RefusesUnequalParts) {
  for (std::int64_t count : {0, 3, -2, 16}) {
    Result<ProcessMap> map = ProcessMap::divided(cpus(8), count);
    ASSERT_FALSE(map.ok());
    EXPECT_EQ(map.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(MeshProcesses, Prints) {
  EXPECT_EQ((MeshProcesses{2, {"data"}}.to_string()), "2 processes; axis \"data\" crosses them");
  EXPECT_EQ((MeshProcesses{4, {"a", "b"}}.to_string()),
            "4 processes; axes \"a\" and \"b\" cross them");
  EXPECT_EQ((MeshProcesses{1, {}}.to_string()), "1 process; no axis crosses them");
}

}  // namespace
}  // namespace meshard
