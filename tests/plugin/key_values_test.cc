// The key-value callbacks, with the fake plugin in two threads that play two processes.
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"
#include "tests/fake_plugin/load_fake.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

using std::chrono::milliseconds;

class MapStore : public KeyValueStore {
 public:
  Result<void> put(std::string_view key, std::string_view value) override {
    std::lock_guard lock(mutex_);
    values[std::string(key)] = value;
    changed_.notify_all();
    return {};
  }
  Result<std::string> get(std::string_view key, milliseconds limit) override {
    std::unique_lock lock(mutex_);
    limits[std::string(key)] = limit;
    if (!changed_.wait_for(lock, std::min(limit, most),
                           [&] { return values.count(std::string(key)) > 0; }))
      return Error(ErrorCode::kDeadlineExceeded, cat("nothing for ", key)).with_note("a note");
    return values[std::string(key)];
  }
  Result<std::optional<std::string>> try_get(std::string_view key) override {
    std::lock_guard lock(mutex_);
    auto found = values.find(std::string(key));
    return found == values.end() ? std::optional<std::string>() : found->second;
  }

  std::map<std::string, std::string> values;
  std::map<std::string, milliseconds> limits;
  milliseconds most = std::chrono::minutes(1);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class KeyValues : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.reset();
    fake_.set_platform("cuda");
  }

  Result<Client> create(std::int64_t node, std::int64_t nodes, std::int64_t devices) {
    NamedValue options[] = {{"node_id", node}, {"num_nodes", nodes}, {"cpu_device_count", devices}};
    return Client::create(Plugin::adopt(fake_.api(), "fake").value(), options, {}, {}, nullptr,
                          store_);
  }

  FakeControl fake_{MESHARD_FAKE_PLUGIN};
  std::shared_ptr<MapStore> store_ = std::make_shared<MapStore>();
};

TEST_F(KeyValues, TwoProcessesFindEachOther) {
  std::optional<Client> first;
  std::thread other([&] { first = create(0, 2, 3).value(); });
  Client second = create(1, 2, 2).value();
  other.join();
  EXPECT_EQ(first->device_count(), 5u);
  EXPECT_EQ(second.device_count(), 5u);
  EXPECT_EQ(first->process_index(), 0);
  EXPECT_EQ(second.process_index(), 1);
  ASSERT_EQ(second.addressable_devices().size(), 2u);
  EXPECT_EQ(second.addressable_devices()[0]->id(), 3);
  EXPECT_EQ(second.find_device(2)->process_index(), 0);
  EXPECT_FALSE(second.find_device(2)->addressable());
  // The plugin's limits.
  EXPECT_EQ(store_->limits.at("local_topology/cuda/1"), std::chrono::minutes(2));
  EXPECT_EQ(store_->limits.at("global_topology/cuda"), std::chrono::minutes(5));
  EXPECT_EQ(store_->values.at("local_topology/cuda/0"), std::string("\3\0\0\0", 4));
}

TEST_F(KeyValues, TheClientKeepsTheStore) {
  std::weak_ptr<MapStore> watched = store_;
  {
    std::optional<Client> first;
    std::thread other([&] { first = create(0, 2, 1).value(); });
    Client second = create(1, 2, 1).value();
    other.join();
    store_.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(fake_.live_objects(), 0);
}

TEST_F(KeyValues, AProcessThatDoesNotComeIsAnErrorWithItsKey) {
  store_->most = milliseconds(20);
  EXPECT_TRUE(throws_error([&] { (void)create(0, 2, 1).value(); }, ErrorCode::kDeadlineExceeded,
                           {"nothing for local_topology/cuda/1", "a note"}));
  EXPECT_TRUE(throws_error([&] { (void)create(1, 2, 1).value(); }, ErrorCode::kDeadlineExceeded,
                           {"global_topology/cuda"}));
  EXPECT_EQ(fake_.live_objects(), 0);
}

TEST_F(KeyValues, NoExceptionReachesThePlugin) {
  struct Throwing final : MapStore {
    Result<void> put(std::string_view, std::string_view) override {
      throw Error(ErrorCode::kUnavailable, "process 0 is gone");
    }
  };
  store_ = std::make_shared<Throwing>();
  EXPECT_TRUE(throws_error([&] { (void)create(1, 2, 1).value(); }, ErrorCode::kUnavailable,
                           {"process 0 is gone"}));
  struct Broken final : MapStore {
    Result<void> put(std::string_view, std::string_view) override { throw std::bad_alloc(); }
  };
  store_ = std::make_shared<Broken>();
  EXPECT_TRUE(
      throws_error([&] { (void)create(1, 2, 1).value(); }, ErrorCode::kInternal, {"bad_alloc"}));
  EXPECT_EQ(fake_.live_objects(), 0);
}

TEST_F(KeyValues, WithoutAStoreThePluginRefuses) {
  store_ = nullptr;
  EXPECT_TRUE(throws_error([&] { (void)create(0, 2, 1).value(); }, ErrorCode::kInvalidArgument,
                           {"key-value callbacks"}));
}

// The group's first use is long after the client was created.
TEST_F(KeyValues, ProgramsOverSeveralProcessesMeetByTheStore) {
  std::string module = R"(module {
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
      return %a : tensor<4xf32>
    }
  })";
  auto run = [&](int node) {
    Client client = create(node, 2, 1).value();
    CompileOptions options;
    options.num_partitions = 2;
    options.device_assignment = {0, 1};
    LoadedExecutable program = client.compile(module, options).value();
    EXPECT_EQ(program.devices().size(), 1u);
    std::vector<float> own = {10.0f * static_cast<float>(node), 1};
    std::vector<std::int64_t> sizes = {2};
    Buffer argument = client
                          .buffer_from_host({own.data(), ElementType::kF32, sizes},
                                            HostSemantics::kImmutableOnlyDuringCall,
                                            *client.addressable_devices()[0])
                          .value()
                          .buffer;
    const BufferList own_part = BufferList::of({&argument, 1});
    std::vector<BufferList> outputs(1);
    LaunchOptions launch;
    launch.id = 77;  // the same in both
    EXPECT_EQ(program.execute(std::vector{&own_part}, outputs, launch).value().id(), 77);
    std::vector<float> whole(4);
    outputs[0][0].read(std::as_writable_bytes(std::span(whole))).value();
    EXPECT_EQ(whole, (std::vector<float>{0, 1, 10, 1}));
    const Device& elsewhere = *client.find_device(1 - node);
    EXPECT_FALSE(client
                     .buffer_from_host({own.data(), ElementType::kF32, sizes},
                                       HostSemantics::kImmutableOnlyDuringCall, elsewhere)
                     .ok());
  };
  std::thread other([&] { run(0); });
  run(1);
  other.join();
  EXPECT_EQ(fake_.invalid_calls(), 0);
  EXPECT_EQ(fake_.live_objects(), 0);
}

}  // namespace
}  // namespace meshard::pjrt
