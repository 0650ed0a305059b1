#include "meshard/runtime/transfer.h"

#include <gmock/gmock.h>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Transferring = OnPlugin;

Tensor numbers(Shape shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(i));
  return from_host(std::move(values), std::move(shape));
}

// Expects each device to hold the part of `whole` that the sharding gives it.
void expect_placed(const Tensor& tensor, const Sharding& sharding, const HostArray& whole) {
  ASSERT_EQ(tensor.stored_sharding(), sharding);
  std::vector<LocalShard> shards = local_shards(tensor);
  ASSERT_EQ(static_cast<std::int64_t>(shards.size()), sharding.mesh().size());
  for (const LocalShard& shard : shards) {
    EXPECT_EQ(shard.device_id(), sharding.mesh().device_id(shard.position()));
    EXPECT_EQ(shard.data(), whole.slice(shard.box())) << "on device " << shard.device_id();
  }
}

TEST_F(Transferring, EqualTilesGoFromDeviceToDevice) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 2}}), P("x"));
  Sharding there(Mesh({{"y", 2}}, {5, 3}), P("y", none));
  restart();
  Tensor b = transfer(a, there);
  expect_placed(b, there, whole);
  expect_placed(a, *a.sharding(), whole);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_moved, 2u);
  EXPECT_EQ(done().bytes_moved, 96u);
  EXPECT_EQ(done().compiles, 0u);
}

TEST_F(Transferring, UnlikeTilesAreReshardedWhereTheyAre) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 4}}), P("x"));
  Sharding there(Mesh({{"r", 2}, {"c", 2}}, {7, 5, 6, 4}), P("c", "r"));
  restart();
  expect_placed(transfer(a, there), there, whole);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_moved, 4u);
}

TEST_F(Transferring, ToSharedDevicesUnevenAndReplicated) {
  Tensor x = numbers({5});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 2}}, {1, 5}), P("x"));
  Sharding overlapping(Mesh({{"x", 2}}, {5, 2}), P("x"));
  restart();
  Tensor b = transfer(a, overlapping);
  expect_placed(b, overlapping, whole);
  Sharding all(Mesh({{"x", 2}}, {0, 1}), P(none));
  Tensor one = x + 1;  // on one device, without a mesh
  HostArray more = one.to_host();
  restart();
  expect_placed(transfer(one, all), all, more);
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(Transferring, FewerDevicesGoThroughTheHost) {
  Tensor x = numbers({4, 6});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x, Mesh({{"x", 4}}), P("x"));
  Sharding there(Mesh({{"x", 2}}, {6, 7}), P(none, "x"));
  expect_placed(transfer(a, there), there, whole);
}

TEST_F(Transferring, AViewOutlivesTheDonationOfItsSource) {
  Tensor x = numbers({64, 64});
  HostArray whole = x.to_host();
  Tensor a = mark_sharding(x * 1, Mesh({{"x", 2}}, {0, 1}), P("x"));
  sync({a});
  Sharding there(Mesh({{"x", 2}}, {0, 2}), P("x", none));
  Tensor b = transfer(a, there);
  auto program = [&] {
    internal::TraceScope scope;
    Tensor parameter = make_parameter(a.type(), a.sharding(), {});
    Tensor result = sharding_constraint(parameter * -5, *a.sharding());
    return Program{.graph = Graph::build(std::vector{parameter.value()},
                                         std::vector{result.value()}, scope.trace()),
                   .donated = {0}};
  }();
  auto compiled = evaluator().compile(std::move(program), SourceLocation::current());
  const Tensor* argument = &a;
  Tensor result;
  compiled->run(std::span(&argument, 1), std::span(&result, 1), SourceLocation::current());
  (void)result.to_host();
  EXPECT_NE(a.value().storage()->gone(), "") << "it was donated";
  expect_placed(b, there, whole);
}

TEST_F(Transferring, PendingValuesAreComputedFirst) {
  Mesh left({{"x", 2}}), right({{"x", 2}}, {2, 3});
  Tensor a = mark_sharding(numbers({4}), left, P("x")) * 2;
  Tensor b = mark_sharding(numbers({4}), right, P("x"));
  EXPECT_THAT((transfer(a, right, P("x")) + b).to_vector<float>(),
              testing::ElementsAre(0, 3, 6, 9));
}

TEST_F(Transferring, Errors) {
  Mesh mesh({{"x", 2}});
  Tensor x = numbers({4});
  EXPECT_TRUE(throws_error([&] { transfer(x, mesh, P("x", none)); }, ErrorCode::kInvalidArgument,
                           {"transfer_test.cc:", "[transfer]", "2 dimensions", "f32[4] has 1"}));
  internal::TraceScope scope;
  EXPECT_TRUE(throws_error([&] { transfer(x, mesh, P("x")); }, ErrorCode::kFailedPrecondition,
                           {"traced function", "one set of devices"}));
}

}  // namespace
}  // namespace meshard
