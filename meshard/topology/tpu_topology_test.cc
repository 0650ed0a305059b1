#include "meshard/topology/tpu_topology.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

// The conformance suites compare all devices of 60 topologies with libtpu's.
TEST(TpuTopology, AsThePluginListsThem) {
  Topology topology = tpu_topology("v5e:4x4*2").value();
  EXPECT_EQ(topology.size(), 32);
  EXPECT_EQ(topology.devices()[2].to_string(), "100004 at (0,1,0) of slice 0, process 0");
  EXPECT_EQ(topology.devices()[16].to_string(), "200000 at (0,0,0) of slice 1, process 4");
  EXPECT_EQ(tpu_topology("v3:4x4").value().devices()[5].to_string(),
            "9 at (0,1,0) core 1, process 0");
  EXPECT_EQ(tpu_topology("v4:2x2x2").value().size(), 16);
  EXPECT_EQ(tpu_topology("v4:2x2x2/megacore").value().size(), 8);
  EXPECT_EQ(tpu_topology("v5e:1x1").value().size(), 1);
}

TEST(TpuTopology, Refused) {
  for (const char* name : {"", "v5e", "v5e:", "v9:2x2", "v5e:2", "v5e:2x2x2", "v5p:2x2", "v5e:0x2",
                           "v5e:2x3", "v5e:2x2/megacore", "v5e:2x2*0", "v5e:9999999999x2",
                           "v5e:4096x4096*2", "v5e:2x2 x", "v5e:400x400*2"})
    EXPECT_FALSE(tpu_topology(name).ok()) << name;
}

}  // namespace
}  // namespace meshard
