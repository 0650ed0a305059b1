// The virtual device: data stays on the host until its sharding is known. Then each shard is sent
// directly to its device, once; nothing is read back and no full copy is made.
#include "meshard/runtime/loaded_program.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

struct VirtualDevice : OnDevices {
  const Mesh mesh{{{"x", 4}, {"y", 2}}};
};
using testing::ElementsAreArray;

TEST_F(VirtualDevice, AValueThatIsNotUsedNeverMoves) {
  Tensor x = counting({64, 64});
  EXPECT_EQ(x.to_vector<float>(), numbers(64 * 64));
  sync({x});
  EXPECT_EQ(x.placement(), "host");
  EXPECT_EQ(done(), RuntimeCounters());
}

TEST_F(VirtualDevice, AMarkSendsEachShardOnceAndNothingElse) {
  Tensor x = mark_sharding(counting({8, 6}), mesh, P("x", "y"));
  EXPECT_EQ(done().buffers_sent, 8u);
  EXPECT_EQ(done().bytes_sent, 8u * 6 * 4);
  for (int i = 0; i < 3; ++i) (void)(x * 2 + x).to_host();
  mark_sharding(x, mesh, P("x", "y"));
  EXPECT_EQ(done().buffers_sent, 8u);
}

TEST_F(VirtualDevice, AnUnmarkedOperandIsPlacedOnceAsItsProgramChose) {
  Tensor x = mark_sharding(counting({8, 6}), mesh, P("x", "y")), b = counting({8, 6}, 100);
  restart();
  Tensor first = x + b, second = x * b;
  sync({first});
  // Split like x, or whole on each device: this is the upper bound.
  EXPECT_LE(done().buffers_sent, 8u);
  EXPECT_LE(done().bytes_sent, 8u * 8 * 6 * 4);
  RuntimeCounters placed = done();
  sync({second});
  EXPECT_EQ(done().buffers_sent, placed.buffers_sent);
  EXPECT_EQ(done().buffers_read, 0u);
  EXPECT_EQ(first.to_vector<float>(), numbers(48, 100, 2));
  EXPECT_EQ(b.placement(), "host") << "the user's own value stays where it is";
}

TEST_F(VirtualDevice, MarkedAfterItsUseTheHostsBytesAreSentAgainWithoutReadingBack) {
  Tensor x = counting({8, 6});
  (void)(x + 1).to_host();
  restart();
  Tensor marked = mark_sharding(x, mesh, P("x", "y"));
  EXPECT_EQ(done().buffers_sent, 8u);
  EXPECT_EQ(done().buffers_read, 0u);
  EXPECT_EQ(done().launches, 0u);
}

TEST_F(VirtualDevice, MarkedAgainTheDevicesExchangeWhatTheyNeed) {
  Tensor x = mark_sharding(counting({8, 6}), mesh, P("x", "y"));
  std::vector<PartitionSpec> specs{P("y", "x"), P(none, none),           P(axes("y", "x"), none),
                                   P("x"),      P(none, axes("x", "y")), P("x", "y")};
  restart();
  for (const PartitionSpec& spec : specs) {
    x = mark_sharding(x, mesh, spec);
    ASSERT_EQ(x.stored_sharding(), Sharding(mesh, spec, 2));
    for (const LocalShard& shard : local_shards(x))
      ASSERT_EQ(shard.data(), counting({8, 6}).to_host().slice(shard.box())) << spec.to_string();
  }
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(VirtualDevice, ValuesMadeOnTheDevicesAreNotSent) {
  std::vector<Tensor> made{mark_sharding(zeros({8, 6}), mesh, P("x", "y")),
                           mark_sharding(full({8, 6}, 3), mesh, P("y")),
                           mark_sharding(reshape(arange(48), {8, 6}), mesh, P("x", "y")),
                           mark_sharding(iota(DType::f32, {5, 3}, 0), mesh, P("x", "y"))};
  sync(made);
  EXPECT_EQ(done().buffers_sent, 0u);
  EXPECT_EQ(done().launches, 1u);
  EXPECT_EQ(made[1].to_vector<std::int32_t>(), std::vector<std::int32_t>(48, 3));
  for (const Tensor& each : made) EXPECT_EQ(each.stored_sharding(), each.sharding());
}

TEST_F(VirtualDevice, ANumberGoesToItsDevicesOnceForTheProcess) {
  Tensor x = mark_sharding(counting({8}), mesh, P("x"));
  (void)(x * 0.3125).to_host();
  restart();
  (void)(x * 0.3125 + x * 0.3125).to_host();
  (void)(x * 1.0 + 0.0).to_host();
  EXPECT_EQ(done().buffers_sent, 0u);
}

TEST_F(VirtualDevice, WithoutAMeshThereIsOneDeviceAndNoWordOfMeshes) {
  Tensor x = counting({8, 6});
  auto step = jit([](Tensor a) { return matmul(a, permute_dims(a, {1, 0})); });
  Tensor y = step(x);
  EXPECT_EQ(done().buffers_sent, 1u);
  EXPECT_EQ(done().bytes_sent, 8u * 6 * 4);
  EXPECT_EQ(done().launches, 1u);
  EXPECT_EQ(y.placement(), "device 0");
  EXPECT_FALSE(y.sharding());
  const LoadedProgram& program = view_of(*step.programs()[0]).program;
  EXPECT_EQ(program.executable().devices().size(), 1u);
  EXPECT_EQ(program.lowered().text.find("sdy"), std::string::npos) << program.lowered().text;
  EXPECT_EQ(program.lowered().num_partitions(), 1);
  restart();
  step(step(mark_sharding(y, Mesh({{"one", 1}}), P(none))));
  EXPECT_EQ(done().buffers_sent, 0u);
}

}  // namespace
}  // namespace meshard
