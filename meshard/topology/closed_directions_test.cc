#include <gtest/gtest.h>

#include "meshard/topology/topology.h"

namespace meshard {
namespace {

// TPU system architecture: a v4 or v5p slice closes a direction of a multiple of 4 chips; a v5e or
// v6e slice, of 16.
TEST(ClosedDirections, CloseAtTheMultipleOfTheGeneration) {
  EXPECT_EQ(closed_directions("TPU v4", {2, 4, 12}), (Topology::Wrap{false, true, true}));
  EXPECT_EQ(closed_directions("TPU v5", {6, 8, 4}), (Topology::Wrap{false, true, true}));
  EXPECT_EQ(closed_directions("TPU v5 lite", {8, 16}), (Topology::Wrap{false, true}));
  EXPECT_EQ(closed_directions("TPU v6 lite", {16, 4}), (Topology::Wrap{true, false}));
}

TEST(ClosedDirections, AreUnknownForOtherDevices) {
  EXPECT_FALSE(closed_directions("TPU v3", {16, 16}));
  EXPECT_FALSE(closed_directions("NVIDIA H100", {8}));
}

}  // namespace
}  // namespace meshard
