#include "meshard/topology/topology.h"

#include "meshard/topology/tpu_topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Topology, Refused) {
  auto refused = [](std::vector<DeviceAttributes> devices, const char* why) {
    return throws_error([&] { Topology topology(devices); }, ErrorCode::kInvalidArgument,
                        {why, "topology_test.cc"});
  };
  EXPECT_TRUE(refused({}, "empty"));
  EXPECT_TRUE(refused({{.id = 3}, {.id = 3}}, "device 3 is listed twice"));
  EXPECT_TRUE(refused({{.id = 0, .coords = {0, 0}}, {.id = 1}}, "device 1, process 0 has 0 "));
  EXPECT_TRUE(refused({{.id = -1}}, "negative index"));
  EXPECT_TRUE(refused({{.id = 0, .coords = {-1}}}, "coordinate outside"));
  EXPECT_TRUE(refused({{.id = 0, .coords = {std::int64_t{1} << 40}}}, "coordinate outside"));
  EXPECT_TRUE(throws_error(
      [] {
        Topology({{.id = 0, .coords = {0, 0}}}, {true});
      },
      ErrorCode::kInvalidArgument, {"wrap has 1 values, but each device has 2"}));
}

TEST(Topology, ClosedDirections) {
  auto wrap = [](const char* name) { return *tpu_topology(name).value().wrap(); };
  EXPECT_EQ(wrap("v5p:2x4x12"), (Topology::Wrap{false, true, true}));
  EXPECT_EQ(wrap("v5e:8x16"), (Topology::Wrap{false, true, false}));
  EXPECT_FALSE(tpu_topology("v3:8x8").value().wrap());
  EXPECT_FALSE(Topology(std::vector<DeviceAttributes>{{.id = 0}}).wrap());
  EXPECT_EQ(*Topology({{.id = 0, .coords = {4}}}, {true}).wrap(), Topology::Wrap{true});
}

TEST(Topology, Text) {
  EXPECT_EQ(tpu_topology("v5e:4x4").value().to_string(), "16 devices of TPU v5 lite, 4x4x1 chips");
  EXPECT_EQ(tpu_topology("v5p:4x4x2").value().to_string(), "32 devices of TPU v5, 4*x4*x2 chips");
  EXPECT_EQ(Topology(std::vector<DeviceAttributes>{{.id = 3}}).to_string(), "1 device");
}

TEST(Topology, Granules) {
  Topology topology({{.id = 0, .process_index = 1, .slice_index = 1},
                     {.id = 1, .process_index = 1, .slice_index = 0},
                     {.id = 2, .process_index = 0},
                     {.id = 3, .process_index = 1, .slice_index = 1}});
  auto ids = [&](Granule granule) {
    std::vector<std::vector<std::int64_t>> all;
    for (const auto& devices : granules_of(topology, granule)) {
      all.emplace_back();
      for (const DeviceAttributes& device : devices) all.back().push_back(device.id);
    }
    return all;
  };
  using Granules = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(ids(Granule::kSlice), (Granules{{2}, {1}, {0, 3}}));
  EXPECT_EQ(ids(Granule::kProcess), (Granules{{2}, {0, 1, 3}}));
}

}  // namespace
}  // namespace meshard
