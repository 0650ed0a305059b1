#include "meshard/topology/topology.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(PhysicalGrid, DevicesAtTheirPlaces) {
  std::vector<DeviceAttributes> devices = {{.id = 7, .coords = {3, 1}},
                                           {.id = 5, .coords = {2, 0}},
                                           {.id = 4, .coords = {2, 1}},
                                           {.id = 6, .coords = {3, 0}}};
  PhysicalGrid grid = physical_grid(devices);
  EXPECT_EQ(grid.shape, (IntVector{2, 2}));
  EXPECT_EQ(grid.ids, (std::vector<std::int64_t>{5, 4, 6, 7}));
  EXPECT_EQ(box_of(devices).low, (IntVector{2, 0}));
}

TEST(PhysicalGrid, DevicesOfAChipAreTheLastDirection) {
  std::vector<DeviceAttributes> devices = {{.id = 0, .coords = {0}, .core_on_chip = 1},
                                           {.id = 1, .coords = {0}, .core_on_chip = 0},
                                           {.id = 2, .coords = {1}, .core_on_chip = 1},
                                           {.id = 3, .coords = {1}, .core_on_chip = 0}};
  PhysicalGrid grid = physical_grid(devices);
  EXPECT_TRUE(grid.has_cores);
  EXPECT_EQ(grid.shape, (IntVector{2, 2}));
  EXPECT_EQ(grid.ids, (std::vector<std::int64_t>{1, 0, 3, 2}));
}

TEST(PhysicalGrid, Refused) {
  auto refused = [](std::vector<DeviceAttributes> devices, const char* why) {
    return throws_error([&] { physical_grid(devices); }, ErrorCode::kFailedPrecondition, {why});
  };
  EXPECT_TRUE(refused({{.id = 0}}, "no coordinates"));
  EXPECT_TRUE(refused({{.id = 0, .coords = {0}}, {.id = 1, .coords = {2}}},
                      "2 devices do not fill a grid of 3 places"));
  EXPECT_TRUE(
      refused({{.id = 0, .coords = {0}}, {.id = 4, .coords = {0}}, {.id = 8, .coords = {2}}},
              "devices 0 and 4 are at the same place"));
}

}  // namespace
}  // namespace meshard
