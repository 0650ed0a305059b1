#include "meshard/graph/storage.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace meshard {
namespace {

struct CountedAttachment final : Storage::Attachment {
  explicit CountedAttachment(int& alive) : alive_(alive) { ++alive_; }
  ~CountedAttachment() override { --alive_; }
  int& alive_;
};

StoragePtr number() { return make_storage<HostStorage>(HostArray::scalar(1.0f)); }

TEST(Storage, OwnsItsAttachment) {
  int alive = 0;
  StoragePtr storage = number();
  EXPECT_EQ(storage->attachment(), nullptr);
  Storage::Attachment& first = storage->attach(std::make_unique<CountedAttachment>(alive));
  EXPECT_EQ(storage->attachment(), &first);
  EXPECT_EQ(&storage->attach(std::make_unique<CountedAttachment>(alive)), &first);
  EXPECT_EQ(alive, 1) << "the second one was not needed";
  storage = {};
  EXPECT_EQ(alive, 0);
}

TEST(Storage, ThreadsShareOneAttachment) {
  StoragePtr storage = number();
  std::vector<Storage::Attachment*> seen(8);
  std::vector<std::thread> threads;
  for (auto& each : seen)
    threads.emplace_back([&] { each = &storage->attach(std::make_unique<Storage::Attachment>()); });
  for (std::thread& thread : threads) thread.join();
  for (auto* each : seen) EXPECT_EQ(each, storage->attachment());
}

}  // namespace
}  // namespace meshard
