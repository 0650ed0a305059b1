#include "meshard/runtime/internal/device_to_device.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"

namespace meshard {
namespace {

using Moving = OnPlugin;

TEST_F(Moving, AValueOnOneDeviceIsCutThere) {
  std::vector<float> values(35);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Tensor x = from_host(std::move(values), {5, 7}) + 1;
  HostArray whole = x.to_host();
  // Uneven, with an empty last tile and replicas, on devices in arbitrary order.
  Sharding target(Mesh({{"x", 4}, {"y", 2}}, {7, 2, 0, 5, 1, 6, 3, 4}), P("x", none));
  restart();
  Tensor moved = move_to(process_runtime(), x.value(), target, SourceLocation::current());
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_read, 0u);
  // Two replicas each of rows 0 and 1, 2 and 3, and 4; device 0 has rows 2 and 3.
  EXPECT_EQ(done().bytes_moved, (2 * 2 + 2 * 2 + 2 * 1 - 2) * 7 * 4u);
  ASSERT_EQ(moved.stored_sharding(), target);
  for (const LocalShard& shard : local_shards(moved))
    EXPECT_EQ(shard.data(), whole.slice(shard.box())) << "on device " << shard.device_id();
  EXPECT_EQ(sum(moved).item<float>(), 630);
}

}  // namespace
}  // namespace meshard
