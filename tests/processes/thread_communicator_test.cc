// The checks of tests/processes/check_communicator.h for the communicator between threads.
#include "meshard/processes/thread_communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/processes/check_communicator.h"

namespace meshard {
namespace {

TEST(ThreadCommunicator, EveryOperation) {
  for (int size : {2, 3, 5}) {
    auto communicators = make_thread_communicators(size);
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&] {
        CommunicatorChecks checks = check_communicator(*communicator);
        EXPECT_EQ(checks.failed, 0);
        EXPECT_GT(checks.passed, 1000);
      });
  }
}

}  // namespace
}  // namespace meshard
