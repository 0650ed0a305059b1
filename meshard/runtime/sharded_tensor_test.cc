#include "meshard/runtime/sharded_tensor.h"

#include <gmock/gmock.h>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/transfer.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Sharded = OnPlugin;
using testing::ElementsAre;

HostArray part(std::vector<float> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}
std::vector<HostArray> parts_of(const ShardedTensor& tensor) {
  std::vector<HostArray> parts;
  for (const LocalShard& shard : tensor.local_shards()) parts.push_back(shard.data());
  return parts;
}
Tensor counted(Shape shape) { return reshape(astype(arange(shape.size()), DType::f32), shape); }

TEST_F(Sharded, FromShardsPutsEachOnItsDevice) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {4, 6, 1, 3});
  std::vector<HostArray> parts;
  for (float v : {1.f, 2.f, 3.f, 4.f}) parts.push_back(part({v, v + 10}, {2, 1}));
  restart();
  ShardedTensor x = ShardedTensor::from_shards(parts, mesh, P("y", "x"));
  EXPECT_EQ(done().buffers_sent, 4u);
  EXPECT_EQ(x.type(), (TensorType{DType::f32, {4, 2}}));
  // Position 1 is (x=0, y=1): rows 2, 3 of column 0.
  EXPECT_THAT(x.global().to_vector<float>(), ElementsAre(1, 3, 11, 13, 2, 4, 12, 14));
  EXPECT_EQ(parts_of(x), parts);
  EXPECT_EQ(x.local_shards()[1].device_id(), 6);
  EXPECT_THAT((x.global() + 1).to_vector<float>(), ElementsAre(2, 4, 12, 14, 3, 5, 13, 15));
}

TEST_F(Sharded, FromShardsOfAnUnevenSizePaddedOrNot) {
  Mesh mesh({{"x", 4}});
  std::vector<HostArray> padded{part({1, 2}, {2}), part({3, 4}, {2}), part({5, 99}, {2}),
                                part({99, 99}, {2})};
  std::vector<HostArray> bare{part({1, 2}, {2}), part({3, 4}, {2}), part({5}, {1}), part({}, {0})};
  for (const auto& parts : {padded, bare}) {
    ShardedTensor x = ShardedTensor::from_shards(parts, mesh, P("x"), Shape{5});
    EXPECT_THAT(x.global().to_vector<float>(), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_EQ(sum(x.global()).item<float>(), 15) << "padding is never seen";
    EXPECT_EQ(parts_of(x), bare);
  }
}

TEST_F(Sharded, LoadReplacesTheContentsOfThisHandle) {
  ShardedTensor x(mark_sharding(counted({5}), Mesh({{"x", 2}}), P("x"))), copy = x;
  std::vector<HostArray> parts = parts_of(x);
  ASSERT_EQ(parts, (std::vector{part({0, 1, 2}, {3}), part({3, 4}, {2})}));
  x.load_local_shards(std::vector{part({6, 7, 8}, {3}), part({9, 5}, {2})});
  EXPECT_THAT(x.global().to_vector<float>(), ElementsAre(6, 7, 8, 9, 5));
  EXPECT_THAT(copy.global().to_vector<float>(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(x.sharding(), copy.sharding());
}

TEST_F(Sharded, ACallbackIsAskedForEachPartOnce) {
  Sharding sharding(Mesh({{"x", 4}, {"y", 2}}), P("x", none));
  TensorType type{DType::f32, {6, 3}};
  HostArray whole = counted(type.shape).to_host();
  std::vector<Box> asked;
  restart();
  ShardedTensor x = ShardedTensor::from_callback(type, sharding, [&](const Box& box) {
    asked.push_back(box);
    return whole.slice(box);
  });
  EXPECT_EQ(asked.size(), 3u) << "the fourth part is empty, replicas share";
  EXPECT_EQ(done().buffers_sent, 8u);
  EXPECT_EQ(x.global().to_host(), whole);
}

TEST_F(Sharded, LocalTensorsStayWhereTheyAre) {
  std::vector<Tensor> locals;
  for (int i = 0; i < 2; ++i)
    locals.push_back(transfer(counted({2}) + i, Mesh({{"one", 1}}, {5 + i}), P(none)));
  restart();
  ShardedTensor x = ShardedTensor::from_local(locals, Mesh({{"x", 2}}, {5, 6}), P("x"));
  EXPECT_THAT(x.global().to_vector<float>(), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().buffers_moved, 0u);
  // To other devices, tensors move from device to device; from the host, they are sent.
  ShardedTensor moved = ShardedTensor::from_local(locals, Mesh({{"x", 2}}, {1, 2}), P("x"));
  EXPECT_EQ(done().buffers_moved, 2u);
  EXPECT_EQ(moved.global().to_host(), x.global().to_host());
  std::vector<Tensor> on_host{from_host<float>({1, 2}, {2}), from_host<float>({3}, {1})};
  EXPECT_THAT(ShardedTensor::from_local(on_host, Mesh({{"x", 2}}), P("x"), Shape{3})
                  .global()
                  .to_vector<float>(),
              ElementsAre(1, 2, 3));
}

TEST_F(Sharded, WrapIfSharded) {
  Tensor x = counted({4});
  EXPECT_FALSE(wrap_if_sharded(x));
  Tensor marked = mark_sharding(x, Mesh({{"x", 2}}), P("x"));
  ASSERT_TRUE(wrap_if_sharded(marked));
  EXPECT_EQ(wrap_if_sharded(marked)->sharding(), *marked.sharding());
  EXPECT_FALSE(wrap_if_sharded(clear_sharding(marked)));
}

TEST_F(Sharded, Errors) {
  Mesh mesh({{"x", 2}});
  ErrorCode invalid = ErrorCode::kInvalidArgument;
  std::vector<HostArray> one{part({1}, {1})};
  std::vector<HostArray> unlike{part({1, 2}, {2}), part({1, 2, 3}, {3})};
  std::vector<HostArray> mixed{part({1}, {1}), HostArray::full({DType::i32, {1}}, 1)};
  EXPECT_TRUE(throws_error([&] { ShardedTensor::from_shards(one, mesh, P("x")); }, invalid,
                           {"sharded_tensor_test.cc:", "1 shards for the 2 devices"}));
  EXPECT_TRUE(
      throws_error([&] { ShardedTensor::from_shards({}, mesh, P("x")); }, invalid, {"no shards"}));
  EXPECT_TRUE(throws_error([&] { ShardedTensor::from_shards(unlike, mesh, P("x")); }, invalid,
                           {"shard 1 (device 1) is f32[3]", "f32[2]"}));
  EXPECT_TRUE(throws_error([&] { ShardedTensor::from_shards(mixed, mesh, P("x")); }, invalid,
                           {"shard 1", "i32[1]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        ShardedTensor::from_shards(mixed, mesh, P("x"), Shape{1, 2});
      },
      invalid, {"rank 1"}));
  EXPECT_TRUE(throws_error([&] { ShardedTensor{counted({2})}; }, invalid, {"no sharding"}));
  ShardedTensor replicated(mark_sharding(counted({2}), mesh, P(none)));
  EXPECT_TRUE(throws_error([&] { replicated.load_local_shards(unlike); },
                           ErrorCode::kFailedPrecondition, {"replicated", "assign"}));
  EXPECT_TRUE(throws_error(
      [&] {
        ShardedTensor::from_callback({DType::f32, {4}}, Sharding(mesh, P("x")),
                                     [&](const Box&) { return one[0]; });
      },
      invalid, {"callback returned f32[1]", "f32[2]"}));
}

}  // namespace
}  // namespace meshard
