#include "meshard/runtime/device_loader.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/sharding/sharding_spec.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Batch = std::map<std::string, Tensor>;
using DeviceLoading = OnPlugin;

struct Numbered {  // `count` batches of host data
  int count, made = 0;
  std::optional<Batch> operator()() {
    if (made == count) return std::nullopt;
    auto n = static_cast<float>(made++);
    return Batch{{"x", from_host(std::vector<float>(8, n), {4, 2})},
                 {"y", from_host(std::vector<float>(4, 10 * n), {4})}};
  }
};

TEST_F(DeviceLoading, PlacesEachBatchAsTheSpecsByNameSay) {
  Mesh mesh({{"data", 2}, {"model", 2}}, {7, 2, 4, 1});
  DeviceLoader<Batch> loader(Numbered{5}, mesh, {{"x", P("data", "model")}, {"y", P("data")}});
  float n = 0;
  for (Batch& batch : loader) {
    // The batch is already placed: this thread has nothing left to do.
    EXPECT_EQ(batch["x"].stored_sharding(), Sharding(mesh, P("data", "model")));
    EXPECT_EQ(batch["x"].placement(), "devices 7,2,4,1");
    EXPECT_EQ(batch["y"].stored_sharding(), Sharding(mesh, P("data")));
    EXPECT_EQ(sum(batch["x"]).item<float>(), 8 * n);
    EXPECT_EQ(sum(batch["y"]).item<float>(), 40 * n);
    ++n;
  }
  EXPECT_EQ(n, 5);
  EXPECT_FALSE(loader.next());
}

TEST_F(DeviceLoading, OfTensorsAndWithSpecsThatBringTheirMesh) {
  Mesh mesh({{"data", 4}});
  int made = 0;
  auto source = [&]() -> std::optional<Tensor> {
    if (made == 3) return std::nullopt;
    return from_host(std::vector<float>(4, static_cast<float>(made++)), {4});
  };
  DeviceLoader<Tensor> loader(source, ShardingSpec::minibatch(mesh, P("data")), {.prefetch = 1});
  for (float n = 0; n < 3; ++n) {
    Tensor batch = loader.next().value();
    EXPECT_EQ(batch.stored_sharding(), Sharding(mesh, P("data")));
    EXPECT_EQ(sum(batch).item<float>(), 4 * n);
  }
  EXPECT_FALSE(loader.next());
  DeviceLoader<Batch> named(Numbered{1}, ShardingSpec(mesh, P("data")));
  EXPECT_EQ(named.next()->at("y").stored_sharding(), Sharding(mesh, P("data")));
}

TEST_F(DeviceLoading, OverTheGlobalMeshOfItsMaker) {
  Mesh mesh({{"data", 2}});
  MeshScope scope(mesh);
  DeviceLoader<Batch> loader(Numbered{1}, P("data"));
  EXPECT_EQ(loader.next()->at("x").stored_sharding(), Sharding(mesh, P("data", none)));
}

TEST_F(DeviceLoading, WhatGoesWrongIsThrownWhereTheBatchIsTaken) {
  Mesh mesh({{"data", 4}});
  Numbered numbered{2};
  auto breaking = [numbered]() mutable {
    std::optional<Batch> batch = numbered();
    if (!batch) throw std::runtime_error("disk gone");
    return batch;
  };
  DeviceLoader<Batch> loader(breaking, mesh, P("data"));
  EXPECT_TRUE(loader.next());
  EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), std::runtime_error);
  EXPECT_FALSE(loader.next());

  DeviceLoader<Batch> misnamed(Numbered{2}, mesh, {{"x", P("data")}, {"z", P()}});
  EXPECT_TRUE(throws_error([&] { misnamed.next(); }, ErrorCode::kInvalidArgument,
                           {"device_loader_test.cc:", "no spec for [\"y\"]"}));
  EXPECT_TRUE(throws_error([&] { DeviceLoader<Batch>(Numbered{2}, mesh, P(), {.prefetch = 0}); },
                           ErrorCode::kInvalidArgument,
                           {"device_loader_test.cc:", "prefetch must be at least 1"}));
}

TEST_F(DeviceLoading, IsLeftInTheMiddle) {
  DeviceLoader<Batch> loader(Numbered{1000}, Mesh({{"data", 4}}), P("data"));
  EXPECT_TRUE(loader.next());
}

}  // namespace
}  // namespace meshard
