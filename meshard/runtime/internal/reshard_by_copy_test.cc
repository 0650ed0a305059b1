#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/reshard.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using ReshardingByCopy = OnPlugin;

Tensor ascending_values(Shape shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(i));
  return from_host(std::move(values), std::move(shape));
}

const DeviceArray& array_of(const Tensor& tensor) {
  return static_cast<const DeviceArray&>(*tensor.value().storage());
}

Result<StoragePtr> resharded_by_copy(const Tensor& tensor, const Sharding& target) {
  return reshard_by_copy(process_runtime().platforms, array_of(tensor), target,
                         SourceLocation::current());
}

// A sharding of rank 2 over one of several meshes of the same eight devices.
Sharding drawn_sharding(TestRandom& random) {
  std::vector<std::int64_t> ids{0, 1, 2, 3, 4, 5, 6, 7};
  std::shuffle(ids.begin(), ids.end(), random);
  if (random.between(0, 2) == 0) {
    Mesh line({{"x", 8}}, ids);
    const PartitionSpec specs[] = {P("x", none), P(none, "x"), P(none, none)};
    return Sharding(line, specs[random.between(0, 2)]);
  }
  Mesh grid({{"x", 2}, {"y", 4}}, ids);
  const PartitionSpec specs[] = {P("x", "y"),  P("y", "x"),   P("x", none),
                                 P(none, "y"), P(none, none), P(AxisList{"x", "y"}, none),
                                 P("y", none)};
  return Sharding(grid, specs[random.between(0, 6)]);
}

// Also uneven sizes, empty tiles, replicas and devices in any order.
TEST_F(ReshardingByCopy, EachDeviceGetsItsPart) {
  TestRandom random;
  for (int i = 0; i < 60; ++i) {
    Tensor x = ascending_values({random.between(1, 40), random.between(1, 40)});
    HostArray whole = x.to_host();
    Sharding from = drawn_sharding(random), to = drawn_sharding(random);
    Tensor placed = mark_sharding(x, from);
    sync(placed);
    RuntimeCounters before = runtime_counters();
    Result<StoragePtr> result = resharded_by_copy(placed, to);
    RuntimeCounters done = runtime_counters() - before;
    ASSERT_TRUE(result.ok()) << result.error().what();
    EXPECT_EQ(done.launches + done.compiles + done.buffers_sent + done.buffers_read, 0u);
    EXPECT_EQ(done.buffers_moved, 8u);
    Tensor moved = make_array(x.type(), *std::move(result), SourceLocation::current());
    ASSERT_EQ(moved.stored_sharding(), to);
    for (const LocalShard& shard : local_shards(moved))
      ASSERT_EQ(shard.data(), whole.slice(shard.box()))
          << x.shape() << " from " << from << " to " << to << " on device " << shard.device_id();
    // A program reads the padding.
    EXPECT_EQ(sum(astype(moved, DType::i32)).item<std::int32_t>(),
              sum(astype(x, DType::i32)).item<std::int32_t>());
  }
}

TEST_F(ReshardingByCopy, LargeValuesAreNotReshardedByAProgram) {
  Mesh mesh({{"x", 8}});
  Tensor rows = mark_sharding(ascending_values({512, 1024}), mesh, P("x", none));
  sync(rows);
  restart();
  Tensor columns = mark_sharding(rows, mesh, P(none, "x"));
  sync(columns);
  EXPECT_EQ(done().compiles, 0u);
  EXPECT_EQ(done().launches, 0u);
  EXPECT_EQ(done().bytes_moved, 512u * 1024 * 4);
  EXPECT_EQ(columns.to_host(), rows.to_host());
}

TEST_F(ReshardingByCopy, TheResultCanBeDonatedAndTheSourceStays) {
  Mesh mesh({{"x", 8}});
  Tensor rows = mark_sharding(ascending_values({512, 1024}), mesh, P("x", none));
  HostArray before = rows.to_host();
  for (const PartitionSpec& spec : {P(none, "x"), P(none, none)}) {
    Tensor moved = mark_sharding(rows, mesh, spec);
    auto add_one = jit([](const Tensor& x) { return x + 1; }, {.donate = {0}});
    Tensor more = add_one(moved);
    EXPECT_EQ(more.to_host().data<float>()[77], 78.0f);
    EXPECT_EQ(rows.to_host(), before);
  }
}

TEST_F(ReshardingByCopy, SomeShardingsNeedAProgram) {
  Mesh mesh({{"x", 8}});
  Tensor rows = mark_sharding(ascending_values({8, 8}), mesh, P("x", none));
  sync(rows);
  const Sharding targets[] = {Sharding(mesh, P(unconstrained, none)),
                              Sharding(mesh, P(none, none)).with_unreduced({"x"}),
                              Sharding(mesh, P(none, none)).with_replicated({"x"})};
  for (const Sharding& target : targets) {
    Result<StoragePtr> result = resharded_by_copy(rows, target);
    ASSERT_FALSE(result.ok()) << target;
    EXPECT_EQ(result.error().code(), ErrorCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace meshard
