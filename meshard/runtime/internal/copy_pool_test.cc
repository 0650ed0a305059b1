#include "meshard/runtime/internal/copy_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace meshard {
namespace {

// Copies the columns [first, last) of a matrix to an array of their own.
StridedCopy columns(const std::vector<int>& from, Shape shape, std::int64_t first,
                    std::int64_t last, std::vector<int>& to) {
  Box box{{0, shape[0]}, {first, last}};
  to.assign(static_cast<std::size_t>(shape[0] * (last - first)), -1);
  return plan_copy(from.data(), shape, box, to.data(), box_shape(box), whole_box(box_shape(box)),
                   sizeof(int));
}

void check(std::int64_t rows, std::int64_t width) {
  std::vector<int> from(static_cast<std::size_t>(rows * width));
  std::iota(from.begin(), from.end(), 0);
  std::vector<std::vector<int>> to(4);
  std::vector<StridedCopy> copies;
  for (std::int64_t c = 0; c < 4; ++c)
    copies.push_back(columns(from, Shape{rows, width}, c * width / 4, (c + 1) * width / 4,
                             to[static_cast<std::size_t>(c)]));
  CopyPool::get().run(copies);
  for (std::int64_t c = 0; c < 4; ++c)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < width / 4; ++j)
        ASSERT_EQ(to[static_cast<std::size_t>(c)][static_cast<std::size_t>(i * width / 4 + j)],
                  i * width + c * width / 4 + j);
}

TEST(CopyPool, SmallCopies) { check(3, 8); }

TEST(CopyPool, LargeCopiesAreShared) { check(1024, 1024); }

TEST(CopyPool, Nothing) { CopyPool::get().run({}); }

TEST(CopyPool, ManyOwnersAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 3; ++i) check(600, 512);
    });
  for (std::thread& thread : threads) thread.join();
}

// Runs in a child process, with room for the stack of one thread but not of a second one.
[[noreturn]] void copy_with_room_for_one_thread() {
  pthread_attr_t attributes;
  std::size_t stack = 0;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_getstacksize(&attributes, &stack) != 0)
    std::exit(2);
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) std::exit(3);
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = pages * 4096 + stack + stack / 2 + (std::size_t{8} << 20);
  std::vector<int> from(1 << 20, 7), to(1 << 20, 0);
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(4);
  Box box{{0, 1 << 20}};
  StridedCopy copy =
      plan_copy(from.data(), Shape{1 << 20}, box, to.data(), Shape{1 << 20}, box, sizeof(int));
  CopyPool(64).run(std::span(&copy, 1));
  std::fprintf(stderr, to == from ? "copied" : "not copied");
  std::exit(0);
}

TEST(CopyPool, CopiesWithTheThreadsThatTheSystemHas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(copy_with_room_for_one_thread(), testing::ExitedWithCode(0), "copied");
}

}  // namespace
}  // namespace meshard
