#include "meshard/runtime/internal/launch_helper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "meshard/base/threads.h"

namespace meshard::internal {
namespace {

TEST(LaunchHelper, EachPieceIsDoneOnceAndBeforeTheReturn) {
  for (std::size_t count : {0, 1, 2, 8, 100}) {
    std::vector<int> done(count);
    for (int i = 0; i < 100; ++i) LaunchHelper::share(count, [&](std::size_t k) { ++done[k]; });
    EXPECT_EQ(done, std::vector<int>(count, 100));
  }
}

TEST(LaunchHelper, SeveralThreadsShareWithIt) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        std::vector<int> done(8);
        LaunchHelper::share(8, [&](std::size_t k) { ++done[k]; });
        if (done != std::vector<int>(8, 1)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LaunchHelper, ItComesIfThereIsACoreForIt) {
  if (usable_cores() < 2) GTEST_SKIP() << "the process has one core";
  // The caller's piece waits for another thread for a while: the helper may still end an earlier
  // job, and then does not come.
  std::atomic<bool> came{false};
  const std::size_t before = LaunchHelper::calls();
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 1000 && !came; ++i)
    LaunchHelper::share(2, [&](std::size_t) {
      if (std::this_thread::get_id() != caller) came = true;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while (!came && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
  EXPECT_TRUE(came);
  EXPECT_GE(LaunchHelper::calls(), before + 1);
}

TEST(LaunchHelper, ThrowsWhatAPieceThrew) {
  for (int i = 0; i < 100; ++i) {
    std::atomic<int> begun{0};
    EXPECT_THROW(LaunchHelper::share(1000,
                                     [&](std::size_t) {
                                       ++begun;
                                       throw std::runtime_error("no");
                                     }),
                 std::runtime_error);
    EXPECT_LE(begun, 2) << "one in each thread";
  }
}

}  // namespace
}  // namespace meshard::internal
