#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "meshard/runtime/transfer.h"
#include "meshard/trace/jit.h"

namespace meshard {
namespace {

using Copying = OnPlugin;

Tensor eight() { return from_host(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {8}); }

TEST_F(Copying, AReplicatedValueIsOnEverySubmeshAlready) {
  Tensor x = mark_sharding(eight(), Mesh({{"x", 8}}), P(none));
  HostArray whole = x.to_host();
  Mesh pair({{"y", 2}}, {3, 2});
  restart();
  Tensor replicated = transfer(x, pair, P(none));
  EXPECT_EQ(replicated.to_host(), whole);
  Tensor split = transfer(x, pair, P("y"));
  EXPECT_EQ(split.to_host(), whole);
  EXPECT_EQ(split.sharding(), Sharding(pair, P("y")));
  EXPECT_EQ(local_shards(split)[0].data(), whole.slice({{0, 4}}));
  EXPECT_EQ(local_shards(split)[0].device_id(), 3);
  EXPECT_EQ(done().buffers_moved, 0u);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Copying, TilesThatAreThereStay) {
  Mesh grid({{"x", 2}, {"y", 4}});
  Tensor x = mark_sharding(eight(), grid, P("x"));
  restart();
  Tensor column = transfer(x, Mesh({{"x", 2}}, {1, 5}), P("x"));
  EXPECT_EQ(column.to_host(), x.to_host());
  EXPECT_EQ(done().buffers_moved, 0u);
  EXPECT_EQ(done().compiles, 0u);
  // Device 5 holds the second tile; device 6 must receive the first.
  restart();
  Tensor one_there = transfer(x, Mesh({{"x", 2}}, {6, 5}), P("x"));
  EXPECT_EQ(one_there.to_host(), x.to_host());
  EXPECT_EQ(done().buffers_moved, 1u);
}

TEST_F(Copying, LargerTilesAreCutWhereTheyAre) {
  Mesh grid({{"x", 2}, {"y", 4}}), half({{"a", 2}, {"b", 2}}, {1, 2, 5, 6});
  Tensor x = reshape(eight(), {4, 2});
  Tensor rows = mark_sharding(x, grid, P("x"));
  HostArray whole = rows.to_host();
  restart();
  Tensor quarters = transfer(rows, half, P("a", "b"));
  EXPECT_EQ(quarters.to_host(), whole);
  EXPECT_EQ(local_shards(quarters)[3].data(), whole.slice({{2, 4}, {1, 2}}));
  Tensor eighths = transfer(rows, half, P({"a", "b"}));
  EXPECT_EQ(local_shards(eighths)[2].data(), whole.slice({{2, 3}, {0, 2}}));
  EXPECT_EQ(done().buffers_moved, 0u);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Copying, ATransferUsesTheCopyThatAProgramMade) {
  Mesh left({{"x", 2}}), right({{"x", 2}}, {4, 5});
  Tensor x = eight() + 1;
  (void)(mark_sharding(eight(), left, P("x")) * x).to_host();
  (void)(mark_sharding(eight(), right, P("x")) * x).to_host();
  restart();
  for (const Mesh& mesh : {left, right})
    EXPECT_EQ(transfer(x, mesh, P("x")).to_host(), (eight() + 1).to_host());
  EXPECT_EQ(done().buffers_moved, 0u);
}

TEST_F(Copying, ACopyOutlivesTheDonationOfItsSource) {
  Mesh all({{"x", 8}}), pair({{"x", 2}});
  Tensor x = mark_sharding(eight(), all, P(none));
  Tensor copy = transfer(x, pair, P(none));
  auto step = jit([](Tensor v) { return v * 2; }, {.donate = {0}});
  Tensor doubled = step(x);
  EXPECT_EQ(copy.to_host(), eight().to_host());
  EXPECT_EQ(doubled.to_host(), (eight() * 2).to_host());
}

TEST_F(Copying, GoneCopiesAreForgotten) {
  Tensor x = eight();
  Mesh pair({{"x", 2}});
  Tensor marked = mark_sharding(eight(), pair, P("x"));
  auto step = jit([](Tensor v, Tensor w) { return v + w; }, {.donate = {0}});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(x, marked).to_host(), (eight() * 2).to_host());
  EXPECT_LE(num_copies(*x.value().storage()), 1u);
}

}  // namespace
}  // namespace meshard
