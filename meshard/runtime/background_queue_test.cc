#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "meshard/runtime/device_loader.h"

namespace meshard {
namespace {

BackgroundQueue::Item numbered(int n) { return std::make_shared<int>(n); }
int number_of(const BackgroundQueue::Item& item) { return *static_cast<int*>(item.get()); }

TEST(BackgroundQueue, GivesItemsInOrderAndThenNull) {
  int made = 0;
  BackgroundQueue queue([&] { return made < 5 ? numbered(made++) : nullptr; }, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(number_of(queue.take()), i);
  EXPECT_EQ(queue.take(), nullptr);
  EXPECT_EQ(queue.take(), nullptr);
}

TEST(BackgroundQueue, NeverRunsFurtherAheadThanItsDepth) {
  std::atomic<int> made{0};
  BackgroundQueue queue([&] { return numbered(made++); }, 3);
  for (int taken = 0; taken < 50; ++taken) {
    // Those taken, those waiting, and the one being made.
    EXPECT_LE(made.load(), taken + 3);
    EXPECT_EQ(number_of(queue.take()), taken);
  }
}

TEST(BackgroundQueue, AnExceptionComesAfterTheItemsBeforeIt) {
  int made = 0;
  BackgroundQueue queue(
      [&]() -> BackgroundQueue::Item {
        if (made == 2) throw std::runtime_error("no more files");
        return numbered(made++);
      },
      4);
  EXPECT_EQ(number_of(queue.take()), 0);
  EXPECT_EQ(number_of(queue.take()), 1);
  try {
    queue.take();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no more files");
  }
  EXPECT_EQ(queue.take(), nullptr);
}

// The queue is destroyed while its maker waits for room; items that were not taken are released.
TEST(BackgroundQueue, EndsWhileItIsFull) {
  std::weak_ptr<void> first;
  std::atomic<int> made{0};
  {
    BackgroundQueue queue(
        [&] {
          BackgroundQueue::Item item = numbered(made++);
          if (first.expired()) first = item;
          return item;
        },
        2);
    BackgroundQueue::Item taken = queue.take();
  }
  EXPECT_TRUE(first.expired());
  EXPECT_GE(made.load(), 1);
}

}  // namespace
}  // namespace meshard
