#include <gtest/gtest.h>

#include "meshard/topology/topology.h"

namespace meshard {
namespace {

TEST(DeviceAttributes, SaysWhatIsKnown) {
  EXPECT_EQ((DeviceAttributes{.id = 7}.to_string()), "7, process 0");
  DeviceAttributes device{.id = 100004,
                          .process_index = 2,
                          .slice_index = 0,
                          .coords = {0, 1, 0},
                          .core_on_chip = 1,
                          .kind = "TPU v3"};
  EXPECT_EQ(device.to_string(), "100004 at (0,1,0) core 1 of slice 0, process 2");
}

}  // namespace
}  // namespace meshard
