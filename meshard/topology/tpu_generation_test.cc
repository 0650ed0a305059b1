#include <gtest/gtest.h>

#include <set>

#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

TEST(TpuGeneration, NamesAndKindsAreUnambiguous) {
  std::set<std::string_view> seen;
  for (const TpuGeneration& tpu : tpu_generations()) {
    EXPECT_TRUE(seen.insert(tpu.name).second) << tpu.name;
    EXPECT_EQ(tpu_generation_named(tpu.name), &tpu);
    ASSERT_FALSE(tpu.kinds.empty()) << tpu.name;
    for (std::string_view kind : tpu.kinds) {
      EXPECT_TRUE(seen.insert(kind).second) << kind;
      EXPECT_EQ(tpu_generation_of(kind), &tpu) << kind;
    }
  }
  EXPECT_EQ(tpu_generation_named("TPU v4"), nullptr);
  EXPECT_EQ(tpu_generation_of("v4"), nullptr);
  EXPECT_EQ(tpu_generation_of("cpu"), nullptr);
}

TEST(TpuGeneration, ItsTopologyHasItsDevices) {
  for (const TpuGeneration& tpu : tpu_generations()) {
    std::string name(tpu.name);
    name += tpu.directions == 2 ? ":4x4" : ":4x4x4";
    Topology topology = tpu_topology(name).value();
    EXPECT_EQ(topology.kind(), tpu.kinds.front()) << name;
    EXPECT_EQ(std::ssize(topology.devices()),
              (tpu.directions == 2 ? 16 : 64) * tpu.devices_per_chip)
        << name;
    EXPECT_EQ(topology.wrap().has_value(), tpu.closing_multiple > 0) << name;
  }
}

}  // namespace
}  // namespace meshard
