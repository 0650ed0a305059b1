#include "meshard/runtime/internal/host_to_device.h"

#include <gmock/gmock.h>

#include <numeric>

#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Placing = OnPlugin;

HostArray ramp(Shape shape) {
  HostArray array = HostArray::uninitialized({DType::f32, shape});
  auto* data = reinterpret_cast<float*>(array.mutable_bytes());
  std::iota(data, data + shape.size(), 0.f);
  return array;
}
StoragePtr placed(const HostArray& array, const Sharding& sharding) {
  return place(process_runtime().platforms, array, sharding, SourceLocation::current());
}
StoragePtr placed_on(int device, const HostArray& array) {
  const pjrt::Client& client = runtime_client();
  return place(process_runtime().platforms, client, array, device_of(client, device, {}), {});
}
const DeviceArray& on_devices(const StoragePtr& storage) {
  return static_cast<const DeviceArray&>(*storage);
}

// Expects every shard to hold what the sharding says, element by element, and the gather to equal
// the array.
void check_shards(const HostArray& array, const StoragePtr& storage, const Sharding& sharding) {
  const DeviceArray& shards = on_devices(storage);
  ASSERT_EQ(static_cast<std::int64_t>(shards.num_shards()), sharding.mesh().size());
  std::vector<float> whole = array.to_vector<float>();
  std::int64_t width = array.shape()[1];
  for (std::size_t p = 0; p < shards.num_shards(); ++p) {
    EXPECT_EQ(shards.device_id(p), sharding.mesh().device_id(static_cast<std::int64_t>(p)));
    Box slices = sharding.slice(array.shape(), static_cast<std::int64_t>(p));
    std::vector<float> expected;
    for (std::int64_t i = slices[0].start; i < slices[0].stop; ++i)
      for (std::int64_t j = slices[1].start; j < slices[1].stop; ++j)
        expected.push_back(whole[static_cast<std::size_t>(i * width + j)]);
    ASSERT_EQ(shards.shard(p, {}).to_vector<float>(), expected) << "shard " << p;
  }
  EXPECT_EQ(storage->to_host({}).to_vector<float>(), whole);
}

TEST_F(Placing, RowsAreUsedInPlace) {
  HostArray array = ramp({1024, 256});  // 128 KiB per shard
  Mesh mesh({{"x", 8}});
  Sharding rows(mesh, P("x", none));
  StoragePtr storage = placed(array, rows);
  RuntimeCounters counted = done();
  EXPECT_EQ(counted.buffers_sent, 8u);
  EXPECT_EQ(counted.bytes_sent, 1u << 20);
  EXPECT_EQ(counted.bytes_aliased, 1u << 20);
  if (runtime_client().rules().host_memory) {
    EXPECT_EQ(on_devices(storage).buffers()[1].unsafe_pointer().value(),
              reinterpret_cast<std::uintptr_t>(array.bytes() + (128 << 10)));
  }
  check_shards(array, storage, rows);
}

TEST_F(Placing, TheHostBlockLivesAsLongAsItsBuffers) {
  StoragePtr storage;
  {
    HostArray array = ramp({1024, 256});
    storage = placed(array, Sharding(Mesh({{"x", 8}}), P("x", none)));
  }
  std::vector<float> values = storage->to_host({}).to_vector<float>();
  EXPECT_EQ(values[262143], 262143.f);
}

TEST_F(Placing, ColumnsAreCopied) {
  HostArray array = ramp({512, 512});
  Sharding columns(Mesh({{"x", 8}}), P(none, "x"));
  StoragePtr storage = placed(array, columns);
  EXPECT_EQ(done().bytes_aliased, 0u);
  EXPECT_EQ(done().bytes_sent, 1u << 20);
  check_shards(array, storage, columns);
}

TEST_F(Placing, AGrid) {
  HostArray array = ramp({16, 12});
  Mesh mesh({{"x", 2}, {"y", 4}});
  for (const PartitionSpec& spec :
       {P("x", "y"), P("y", "x"), P("x", none), P(none, "y"), P(axes("y", "x"), none)}) {
    Sharding sharding(mesh, spec);
    check_shards(array, placed(array, sharding), sharding);
  }
}

TEST_F(Placing, ReplicasShareOneBlock) {
  HostArray array = ramp({256, 256});
  Sharding replicated = Sharding::replicated(Mesh({{"x", 8}}), 2);
  StoragePtr storage = placed(array, replicated);
  EXPECT_EQ(done().bytes_aliased, 8u << 18);
  if (runtime_client().rules().host_memory) {
    const pjrt::BufferList& buffers = on_devices(storage).buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i)
      EXPECT_EQ(buffers[i].unsafe_pointer().value(),
                reinterpret_cast<std::uintptr_t>(array.bytes()));
  }
  check_shards(array, storage, replicated);
}

TEST_F(Placing, UnevenSizesArePadded) {
  for (std::int64_t rows : {7, 2, 1, 10}) {
    HostArray array = ramp({rows, 3});
    Sharding sharding(Mesh({{"x", 4}}), P("x", none));
    StoragePtr storage = placed(array, sharding);
    check_shards(array, storage, sharding);
    const DeviceArray& shards = on_devices(storage);
    std::int64_t each = (rows + 3) / 4;
    HostArray last = shards.padded_shard(3, {});
    EXPECT_EQ(last.shape(), (Shape{each, 3}));
    std::int64_t held = std::max<std::int64_t>(0, rows - 3 * each);
    std::vector<float> values = last.to_vector<float>();
    for (auto i = static_cast<std::size_t>(held * 3); i < values.size(); ++i)
      EXPECT_EQ(values[i], 0) << "padding is zero";
  }
}

TEST_F(Placing, AnyDevicesInAnyOrder) {
  HostArray array = ramp({8, 2});
  for (const std::vector<std::int64_t>& ids :
       {std::vector<std::int64_t>{7, 5, 6, 4}, {1, 5, 0, 3}, {4, 5, 6, 7}}) {
    Sharding sharding(Mesh({{"x", 4}}, ids), P("x", none));
    check_shards(array, placed(array, sharding), sharding);
  }
}

TEST_F(Placing, OneDevice) {
  HostArray array = ramp({4, 4});
  StoragePtr storage = placed_on(3, array);
  EXPECT_EQ(storage->sharding(), nullptr);
  EXPECT_EQ(storage->placement(), "device 3");
  EXPECT_EQ(storage->to_host({}).to_vector<float>(), array.to_vector<float>());
}

TEST_F(Placing, MemoryThatIsNotAligned) {
  std::vector<float> values(40001);
  std::iota(values.begin(), values.end(), 0.f);
  std::span<const float> odd(values.data() + 1, 40000);
  HostArray array = HostArray::borrow({DType::f32, {40000, 1}}, odd.data(), [] {});
  Sharding rows(Mesh({{"x", 2}}), P("x", none));
  StoragePtr storage = placed(array, rows);
  EXPECT_EQ(storage->to_host({}).to_vector<float>()[39999], 40000.f);
  StoragePtr single = placed_on(0, array);
  EXPECT_EQ(single->to_host({}).to_vector<float>()[0], 1.f);
}

TEST_F(Placing, ADeviceThatDoesNotExist) {
  Sharding sharding(Mesh({{"x", 2}}, {0, 99}), P("x", none));
  SourceLocation where = SourceLocation::current();
  std::uint32_t line = where.line;
  EXPECT_TRUE(throws_error(
      [&] {
        (void)place(process_runtime().platforms, ramp({4, 4}), sharding, where);
      },
      ErrorCode::kNotFound,
      {cat("host_to_device_test.cc:", line), "device 99 does not exist", "0,1,2,3,4,5,6,7"}));
  EXPECT_EQ(done().buffers_sent, 0u);
}

HostArray two_by_two() { return HostArray::from_vector<float>({1, 2, 3, 4}, {2, 2}); }

TEST(PadOnHost, ZerosAreAddedAtTheEnd) {
  HostArray padded = padded_on_host(two_by_two(), {DType::f32, {3, 4}});
  EXPECT_EQ(padded.to_vector<float>(), (std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0}));
}

TEST(PadOnHost, AnArrayThatFitsIsNotCopied) {
  HostArray array = two_by_two();
  EXPECT_EQ(padded_on_host(array, array.type()).bytes(), array.bytes());
}

TEST(PadOnHost, AnEmptyShardIsAllPadding) {
  HostArray empty = HostArray::zeros({DType::f32, {0, 2}});
  EXPECT_EQ(padded_on_host(empty, {DType::f32, {1, 2}}).to_vector<float>(),
            (std::vector<float>{0, 0}));
}

TEST(PadOnHost, APartIsCopiedToTheStart) {
  HostArray block = HostArray::full({DType::f32, {2, 3}}, 9);
  copy_into_padded(two_by_two(), {{0, 2}, {1, 2}}, block).run();
  EXPECT_EQ(block.to_vector<float>(), (std::vector<float>{2, 9, 9, 4, 9, 9}));
}

}  // namespace
}  // namespace meshard
