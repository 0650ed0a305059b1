// Values on two platforms: transfers between them, unplaced values, gradients, collectives, shards
// and checkpoints.
#include <cstdio>
#include <filesystem>
#include <map>

#include "tests/platforms/two_platforms.h"

namespace meshard {
namespace {

using PlatformValues = TwoPlatforms;

TEST_F(PlatformValues, ATransferGoesByWayOfTheHost) {
  Tensor x = mark_sharding(ramp({8, 4}), first(), P("x"));
  sync({x});
  restart();
  Tensor y = transfer(x, second(), P("x"));
  sync({y});
  // Each of 4 shards of 32 bytes is read once and sent once.
  EXPECT_EQ(done().buffers_read, 4u);
  EXPECT_EQ(done().bytes_read, 128u);
  EXPECT_EQ(done().buffers_sent, 4u);
  EXPECT_EQ(done().bytes_sent, 128u);
  EXPECT_EQ(done().buffers_moved, 0u);
  EXPECT_EQ(y.placement(), "devices 0,1,2,3 of second");
  EXPECT_EQ(x.placement(), "devices 0,1,2,3 of cpu");
  EXPECT_EQ(values(y), values(ramp({8, 4})));
  EXPECT_EQ(values(transfer(y * 2, first(), P(none, "x"))), values(ramp({8, 4}) * 2));
}

TEST_F(PlatformValues, EveryLayoutAndType) {
  Mesh cpu({{"a", 2}, {"b", 4}}, {7, 6, 5, 4, 3, 2, 1, 0});
  Mesh other = Mesh({{"a", 2}, {"b", 2}}, {2, 0, 3, 1}).with_device_type("second");
  std::vector<PartitionSpec> specs{
      P(), P("a"), P(none, "b"), P("b", "a"), P(axes("a", "b")), P("a", axes("b"))};
  for (DType dtype : {DType::f32, DType::bf16, DType::bool_, DType::i64, DType::u8, DType::c64})
    for (const PartitionSpec& from : specs)
      for (const PartitionSpec& to : specs) {
        HostArray host = astype(ramp({5, 7}) - 3, dtype).to_host();  // uneven
        Tensor x = mark_sharding(from_host(host), cpu, from);
        HostArray there = transfer(x, other, to).to_host();
        HostArray back = transfer(transfer(x, other, to), cpu, from).to_host();
        EXPECT_EQ(there.to_string(), host.to_string()) << cat(from, " to ", to);
        EXPECT_EQ(back.to_string(), host.to_string()) << cat(from, " to ", to);
      }
  for (Shape shape : {Shape{}, Shape{0, 3}, Shape{1}}) {
    Tensor x = mark_sharding(ramp(shape), cpu, P());
    EXPECT_EQ(values(transfer(x, other, P())), values(ramp(shape)));
  }
}

TEST_F(PlatformValues, WhatNobodyPlacedFollowsWhatItMeets) {
  Tensor a = mark_sharding(ones({8}), first(), P("x"));
  Tensor b = mark_sharding(ones({8}), second(), P("x"));
  Tensor shared = exp(zeros({8})) + 2;  // 3
  sync({a * shared, b * shared});
  EXPECT_EQ(sum(a * shared).item<float>(), 24);
  EXPECT_EQ(sum(b * shared).item<float>(), 24);
  Tensor computed = ramp({8}) * 2;
  sync({computed});  // on the default platform, but unplaced
  EXPECT_EQ(sum(b * computed).item<float>(), 56);
  EXPECT_EQ(sum(a * computed).item<float>(), 56);
  // A number is transferred to where it is used.
  Tensor loss = sum(a);
  EXPECT_EQ(sum(b * loss).item<float>(), 64);
  EXPECT_EQ((b * loss).placement(), "recorded");
  Tensor back = sum(b) + loss;
  EXPECT_EQ(back.item<float>(), 16);
  auto step = jit([](Tensor x, Tensor y) { return x * y; });
  EXPECT_EQ(sum(step(b, computed)).item<float>(), 56);
  EXPECT_EQ(sum(step(a, computed)).item<float>(), 56);
  EXPECT_EQ(sum(step(b, loss)).item<float>(), 64);
}

TEST_F(PlatformValues, OneEvaluationMayNeedBoth) {
  Tensor x = mark_sharding(ramp({8}), first(), P("x")) * 3;
  Tensor scale = max(x);
  Tensor y = mark_sharding(ramp({8}), second(), P("x")) / scale;
  Tensor z = sum(y) * x;
  EXPECT_FLOAT_EQ(values(z)[7], 28);  // (0 + ... + 7) / 21 * 21
}

TEST_F(PlatformValues, GradientsAndOptimizersOnBoth) {
  auto loss = [](Tensor w, Tensor x) { return mean(square(matmul(x, w) - 1)); };
  std::map<std::string, std::vector<float>> ends;
  for (const Mesh& mesh : {first(), second()}) {
    Tensor w = mark_sharding(ones({4, 2}), mesh, P());
    Tensor x = mark_sharding(ramp({8, 4}) * 0.1f, mesh, P("x"));
    auto step = jit(
        [&](Tensor weights, Tensor batch) { return weights - grad(loss)(weights, batch) * 0.01f; });
    for (int i = 0; i < 5; ++i) w = step(w, x);
    EXPECT_TRUE(w.stored_sharding()->mesh().same_devices(mesh));
    ends[mesh.device_type()] = values(w);
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(ends[""][i], ends["second"][i], 1e-5);
}

TEST_F(PlatformValues, CollectivesSubmeshesAndManualFunctions) {
  Mesh mesh = Mesh({{"a", 2}, {"b", 2}}).with_device_type("second");
  Tensor x = mark_sharding(ramp({8}), mesh, P(axes("a", "b")));
  EXPECT_EQ(values(all_reduce(x, mesh, "a")), (std::vector<float>{4, 6, 8, 10}));
  EXPECT_EQ(values(all_gather(x, mesh, {"a", "b"})), values(ramp({8})));
  auto twice = manual(mesh, P(axes("a", "b")), P(axes("a", "b")), [](Tensor part) {
    return all_reduce(part, {"a", "b"}, ReduceKind::kMax);
  });
  EXPECT_EQ(values(twice(x)), (std::vector<float>{6, 7, 6, 7, 6, 7, 6, 7}));
  Mesh part = *mesh.submesh({"b"}, 2);
  EXPECT_EQ(part.device_type(), "second");
  Tensor y = mark_sharding(ramp({4}), part, P("b")) + 1;
  EXPECT_EQ(values(y), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(y.placement(), "devices 2,3 of second");
  // Within the platform, data is copied from device to device.
  restart();
  Tensor moved = transfer(y, *mesh.submesh({"b"}, 0), P("b"));
  sync({moved});
  EXPECT_EQ(done().buffers_moved, 2u);
  EXPECT_EQ(done().buffers_sent, 0u);
}

// Shardings that the compiler chooses also have the device type of the platform.
TEST_F(PlatformValues, WhatTheCompilerChooses) {
  Mesh mesh = Mesh({{"a", 2}, {"b", 2}}).with_device_type("second");
  Tensor x = mark_sharding(ramp({4, 8}), mesh, P("a", "b"));
  auto f = jit([](Tensor v) { return reshape(permute_dims(v), {4, 8}) + v; });
  Tensor y = f(x);
  EXPECT_EQ(y.stored_sharding()->mesh().device_type(), "second");
  Tensor host = reshape(permute_dims(ramp({4, 8})), {4, 8}) + ramp({4, 8});
  EXPECT_EQ(values(y), values(host));
  EXPECT_EQ(values(reshape(x, {32}) * 2 + 1), values(ramp({32}) * 2 + 1));
}

TEST_F(PlatformValues, ShardsAndShardedTensors) {
  ShardedTensor made = ShardedTensor::from_callback(
      {DType::f32, {8, 2}}, Sharding(second(), P("x", none)), [](const Box& box) {
        return HostArray::full({DType::f32, box_shape(box)}, double(box[0].start));
      });
  EXPECT_EQ(max(made.global()).item<float>(), 6);
  EXPECT_EQ(made.local_shards()[3].device_id(), 3);
  // Local tensors of the other platform are copied through the host.
  std::vector<Tensor> locals;
  for (std::int64_t id : {0, 1, 2, 3})
    locals.push_back(mark_sharding(full({2}, double(id)), Mesh({{"one", 1}}, {id}), P()));
  Tensor global = ShardedTensor::from_local(locals, second(), P("x")).global();
  EXPECT_EQ(values(global), (std::vector<float>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values(global * 2)[7], 6);
  EXPECT_EQ(global.placement(), "devices 0,1,2,3 of second");
  made.load_local_shards(std::vector<HostArray>(4, HostArray::full({DType::f32, {2, 2}}, 5)));
  EXPECT_EQ(sum(made.global()).item<float>(), 80);
}

TEST_F(PlatformValues, ACheckpointOfBoth) {
  std::map<std::string, Tensor> saved{{"a", mark_sharding(ramp({8}), first(), P("x")) + 1},
                                      {"b", mark_sharding(ramp({8}), second(), P("x")) * 2}};
  std::string path = testing::TempDir() + "/platforms.safetensors";
  io::save(path, saved).value();
  // Restores each on the platform where the other one was.
  std::map<std::string, Tensor> like{
      {"a", abstract_tensor({DType::f32, {8}}, Sharding(second(), P("x")))},
      {"b", abstract_tensor({DType::f32, {8}}, Sharding(first(), P("x")))}};
  auto restored = io::restore(path, like).value();
  EXPECT_EQ(values(restored["a"]), values(ramp({8}) + 1));
  EXPECT_EQ(values(restored["b"]), values(ramp({8}) * 2));
  EXPECT_EQ(restored["a"].placement(), "devices 0,1,2,3 of second");
  EXPECT_EQ(restored["b"].placement(), "devices 0,1,2,3 of cpu");
  std::filesystem::remove(path);
}

TEST_F(PlatformValues, InPlaceOperatorsAndTheGlobalMesh) {
  Tensor x = mark_sharding(ramp({8}), second(), P("x"));
  x += 1;
  EXPECT_EQ(values(x)[7], 8);
  EXPECT_EQ(x.sharding()->mesh(), second());
  MeshScope scope(second());
  Tensor y = mark_sharding(ramp({8}), P("x")) + x;
  EXPECT_EQ(values(y)[7], 15);
  EXPECT_EQ(y.placement(), "devices 0,1,2,3 of second");
}

}  // namespace
}  // namespace meshard
