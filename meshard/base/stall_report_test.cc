#include "meshard/base/stall_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace meshard {
namespace {

using std::chrono::milliseconds;

struct StallTest : testing::Test {
  void SetUp() override {
    set_stall_time(milliseconds(5));
    set_stall_handler([this](const Stall& stall) {
      std::lock_guard lock(mutex);
      stalls.push_back(stall);
      changed.notify_all();
    });
  }
  void TearDown() override {
    internal::set_stall_detail(nullptr);
    set_stall_handler({});
    set_stall_time(std::chrono::seconds(60));
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Stall> stalls;
};

TEST_F(StallTest, AWaitThatIsTooLongIsReportedOnceAndGoesOn) {
  std::mutex other;
  std::condition_variable door;
  bool open = false;
  internal::set_stall_detail(+[] { return std::string("; nothing is in flight"); });
  std::thread opener([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !stalls.empty(); });
    lock.unlock();
    std::this_thread::sleep_for(milliseconds(30));  // time for a second report
    std::lock_guard hold(other);
    open = true;
    door.notify_all();
  });
  SourceLocation here = SourceLocation::current();
  {
    internal::WaitPlace place(here);
    std::unique_lock lock(other);
    internal::wait_or_report(
        door, lock, [&] { return open; }, [] { return "the door"; });
    EXPECT_TRUE(lock.owns_lock());
  }
  opener.join();
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_THAT(stalls[0].text, testing::HasSubstr("waiting for 0 s for the door; nothing is in"));
  EXPECT_EQ(stalls[0].where.line, here.line);
  EXPECT_THAT(stalls[0].to_string(), testing::HasSubstr("stall_report_test.cc"));
  EXPECT_FALSE(internal::WaitPlace::current().known());
}

TEST_F(StallTest, WhatIsDoneIsNotWaitedFor) {
  std::mutex other;
  std::condition_variable door;
  std::unique_lock lock(other);
  internal::wait_or_report(
      door, lock, [] { return true; }, [] { return "nothing"; });
  EXPECT_TRUE(stalls.empty());
}

TEST_F(StallTest, AHandlerThatThrowsEndsTheWait) {
  set_stall_handler([](const Stall&) { throw std::runtime_error("enough"); });
  std::mutex other;
  std::condition_variable door;
  auto wait = [&] {
    std::unique_lock lock(other);
    internal::wait_or_report(
        door, lock, [] { return false; }, [] { return "the door"; });
  };
  EXPECT_THROW(wait(), std::runtime_error);
  EXPECT_TRUE(other.try_lock()) << "the lock was given back";
  other.unlock();
}

TEST_F(StallTest, ZeroReportsNothing) {
  set_stall_time(milliseconds(0));
  internal::StallWatch watch;
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(watch.is_due());
  EXPECT_GE(watch.slice(), milliseconds(100));
}

}  // namespace
}  // namespace meshard
