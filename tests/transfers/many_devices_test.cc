// Tiles of many pieces: the value's own devices reshard it first.
#include <gtest/gtest.h>

#include <numeric>

#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"

namespace meshard {
namespace {

struct ManyDevices : OnPlugin {
  ManyDevices() : OnPlugin(20) {}
  static Mesh line(const char* axis, std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    return Mesh({{axis, count}}, ids);
  }
  void expect_moved(const Sharding& from, const Sharding& to) {
    HostArray whole = arange(24 * 24.0f).to_host().reshaped({24, 24});
    Tensor placed = mark_sharding(from_host(whole), from);
    restart();
    Tensor moved = transfer(placed, to);
    EXPECT_EQ(done().buffers_sent, 0u);
    EXPECT_EQ(done().buffers_read, 0u);
    moves_ = done().buffers_moved;
    ASSERT_EQ(moved.stored_sharding(), to);
    for (const LocalShard& shard : local_shards(moved))
      EXPECT_EQ(shard.data(), whole.slice(shard.box())) << shard.to_string();
  }
  std::uint64_t moves_ = 0;
};

TEST_F(ManyDevices, RowsBecomeColumnsOnOtherDevices) {
  const Sharding rows(line("r", 0, 12), P("r", none));
  // 12 pieces for each tile: the rows become tiles of a whole, or of 12, columns.
  expect_moved(rows, Sharding(line("c", 12, 8), P(none, "c")));
  EXPECT_EQ(moves_, 8u);
  expect_moved(rows, Sharding(line("c", 8, 12), P(none, "c")));
  EXPECT_LE(moves_, 12u);
  // 8 pieces for each tile are sent as they are.
  expect_moved(Sharding(line("r", 0, 8), P("r", none)), Sharding(line("c", 10, 6), P(none, "c")));
  EXPECT_EQ(moves_, 8u * 6);
}

}  // namespace
}  // namespace meshard
