#include "meshard/base/threads.h"

#include <gtest/gtest.h>

#include <thread>

namespace meshard::internal {
namespace {

struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  ~Counted() { --alive; }
  int value = 0;
};

TEST(ThreadInstance, EachThreadHasItsOwn) {
  thread_instance<Counted>().value = 1;
  std::thread([] {
    EXPECT_EQ(thread_instance<Counted>().value, 0);
    EXPECT_EQ(Counted::alive, 2);
  }).join();
  EXPECT_EQ(Counted::alive, 1) << "the other ended with its thread";
  EXPECT_EQ(thread_instance<Counted>().value, 1);
}

struct UsesItLate {
  ~UsesItLate() { seen = thread_instance<Counted>().value; }
  static inline int seen = 0;
};

TEST(ThreadInstance, OutlivesTheThreadLocalObjects) {
  const int before = Counted::alive;
  std::thread([] {
    static thread_local UsesItLate later;  // constructed first, destroyed last
    static_cast<void>(&later);
    thread_instance<Counted>().value = 7;
  }).join();
  EXPECT_EQ(UsesItLate::seen, 7);
  EXPECT_EQ(Counted::alive, before);
}

struct UsesItInItsDestructor {
  ~UsesItInItsDestructor() { seen = ++thread_instance<Counted>().value; }
  static inline int seen = 0;
};

TEST(ThreadInstance, IsMadeAgainAfterItsEnd) {
  const int before = Counted::alive;
  std::thread([] {
    thread_instance<Counted>().value = 7;  // destroyed first if keys go in order
    static_cast<void>(thread_instance<UsesItInItsDestructor>());
  }).join();
  EXPECT_GT(UsesItInItsDestructor::seen, 0);
  EXPECT_EQ(Counted::alive, before) << "the second one ended with the thread too";
}

}  // namespace
}  // namespace meshard::internal
