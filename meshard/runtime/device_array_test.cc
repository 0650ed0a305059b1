#include "meshard/runtime/device_array.h"

#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Arrays = OnPlugin;

HostArray numbers(std::vector<float> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

TEST_F(Arrays, BoxesAreClampedToTheValue) {
  Sharding sharding(Mesh({{"x", 4}}), P("x"));
  StoragePtr storage =
      place(process_runtime().platforms, numbers({1, 2, 3, 4, 5}, {5}), sharding, {});
  const auto& array = static_cast<const DeviceArray&>(*storage);
  EXPECT_EQ(array.box(2)[0].start, 4);
  EXPECT_EQ(array.box(2)[0].stop, 5);
  EXPECT_EQ(box_shape(array.box(3)), Shape{0});
  EXPECT_EQ(array.shard(3, {}).shape(), Shape{0});
  EXPECT_EQ(array.placement(), "devices 0,1,2,3");
}

TEST_F(Arrays, ReadsIntoTheCallersMemory) {
  Sharding sharding(Mesh({{"x", 2}, {"y", 2}}), P("y", "x"));
  StoragePtr storage =
      place(process_runtime().platforms, numbers({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}), sharding, {});
  std::vector<float> mine(8);
  static_cast<const DeviceArray&>(*storage).read_into(mine.data(), {});
  EXPECT_EQ(mine, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(Arrays, EveryDTypeComesBack) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    HostArray array = numbers({0, 1, 1, 0}, {4}).astype(dtype);
    if (dtype == DType::f8e8m0fnu) array = numbers({1, 2, 4, 1}, {4}).astype(dtype);
    Result<StoragePtr> storage = [&]() -> Result<StoragePtr> {
      try {
        return place(process_runtime().platforms, array, Sharding(Mesh({{"x", 2}}), P("x")), {});
      } catch (const Error& error) {
        return error;
      }
    }();
    if (!storage.ok()) continue;  // the plugin may not know the newest floats
    EXPECT_EQ(storage.value()->to_host({}).to_string(), array.to_string()) << to_string(dtype);
  }
}

// An array over `mesh` of which this process has only the buffers on some devices, as if the others
// were in other processes.
StoragePtr part_of(const HostArray& values, const Sharding& sharding,
                   const std::vector<std::int64_t>& positions) {
  Platforms& platforms = process_runtime().platforms;
  const pjrt::Client& client = platforms.client(SourceLocation{});
  TensorType shard{values.dtype(), Shape{sharding.shard_shape(values.shape())[0]}};
  std::vector<pjrt::Buffer> buffers;
  for (std::int64_t p : positions) {
    HostArray block = values.slice({{p % 2 * 2, p % 2 * 2 + 2}});
    const pjrt::Device& device = *client.find_device(sharding.mesh().device_id(p));
    buffers.push_back(
        internal::give_to_device(client, block, block.bytes(), shard, false, device, {}));
  }
  return make_storage<DeviceArray>(platforms, values.type(), sharding, std::move(buffers));
}

TEST_F(Arrays, PartsInOtherProcesses) {
  HostArray values = numbers({1, 2, 3, 4}, {4});
  Sharding twice(Mesh({{"copy", 2}, {"x", 2}}, {5, 4, 3, 2}), P("x"));
  StoragePtr storage = part_of(values, twice, {1, 3});
  const auto& array = static_cast<const DeviceArray&>(*storage);
  EXPECT_FALSE(array.has_all_parts());
  EXPECT_EQ(array.num_shards(), 2u);
  EXPECT_EQ(array.position(0), 1);
  EXPECT_EQ(array.position(1), 3);
  EXPECT_EQ(array.shard_at(3), 1u);
  EXPECT_FALSE(array.shard_at(0));
  EXPECT_EQ(array.distinct_shards(), std::vector<std::size_t>{0});
  EXPECT_EQ(array.box(1)[0].start, 2);
  EXPECT_EQ(array.shard(1, {}).to_string(), "[3, 4] f32[2]");
  EXPECT_EQ(array.placement(), "devices 5,4,3,2");
  EXPECT_EQ(array.local_text({}),
            "f32[4] on devices 5,4,3,2, of which this process has device 4 with [2:4]:\n"
            "[3, 4] f32[2], device 2 with [2:4]:\n[3, 4] f32[2]");
  EXPECT_TRUE(throws_error([&] { (void)array.to_host({}); }, ErrorCode::kUnimplemented,
                           {"parts of the value f32[4] on devices 5,4,3,2"}));
}

TEST_F(Arrays, AllPartsWithoutAllShards) {
  Sharding twice(Mesh({{"copy", 2}, {"x", 2}}), P("x"));
  StoragePtr storage = part_of(numbers({1, 2, 3, 4}, {4}), twice, {1, 2});
  const auto& array = static_cast<const DeviceArray&>(*storage);
  EXPECT_TRUE(array.has_all_parts());
  EXPECT_EQ(array.to_host({}).to_string(), "[1, 2, 3, 4] f32[4]");
  EXPECT_EQ(array.local_text({}), "");
}

TEST_F(Arrays, EntirelyInOtherProcesses) {
  StoragePtr storage =
      part_of(numbers({1, 2, 3, 4}, {4}), Sharding(Mesh({{"x", 2}}, {6, 7}), P("x")), {});
  const auto& array = static_cast<const DeviceArray&>(*storage);
  EXPECT_EQ(array.num_shards(), 0u);
  EXPECT_TRUE(array.is_live());
  EXPECT_EQ(array.placement(), "devices 6,7");
  EXPECT_EQ(array.local_text({}), "f32[4] on devices 6,7, of which this process has none");
  array.wait({});
  std::uint32_t line = __LINE__ + 1;
  array.set_donated_at(SourceLocation::current());
  EXPECT_FALSE(array.is_live());
  EXPECT_NE(array.gone().find(cat("donated to a program at device_array_test.cc:", line)),
            std::string::npos)
      << array.gone();
}

TEST_F(Arrays, ADeletedValueSaysSo) {
  StoragePtr storage = place(process_runtime().platforms, numbers({1, 2}, {2}),
                             Sharding(Mesh({{"x", 2}}), P("x")), {});
  const auto& array = static_cast<const DeviceArray&>(*storage);
  EXPECT_TRUE(array.is_live());
  EXPECT_EQ(array.gone(), "");
  const_cast<pjrt::BufferList&>(array.buffers()).delete_now().value();
  std::uint32_t line = __LINE__ + 1;
  EXPECT_TRUE(throws_error([&] { (void)array.to_host(SourceLocation::current()); },
                           ErrorCode::kFailedPrecondition,
                           {cat("device_array_test.cc:", line), "f32[2] is gone", "deleted"}));
  EXPECT_THROW((void)array.shard(0, {}), Error);
}

}  // namespace
}  // namespace meshard
