// The checks of tests/processes/check_communicator.h for the communicator between threads, and for
// devices of such "processes".
#include "tests/support/thread_communicator.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "meshard/processes/device_communicator.h"
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
        CommunicatorChecks started = check_started_messages(*communicator);
        EXPECT_EQ(started.failed, 0);
        EXPECT_GT(started.passed, 10);
      });
  }
}

TEST(DeviceCommunicator, EveryOperation) {
  for (const std::vector<int>& counts : {std::vector{2, 2}, {1, 3}, {2, 1, 2}}) {
    auto processes = make_thread_communicators(static_cast<int>(counts.size()));
    std::vector<std::unique_ptr<Communicator>> devices;
    for (auto& process : processes)
      for (auto& device : make_device_communicators(*process, counts))
        devices.push_back(std::move(device));
    std::vector<std::jthread> threads;
    for (auto& device : devices)
      threads.emplace_back([&] {
        CommunicatorChecks checks = check_communicator(*device);
        EXPECT_EQ(checks.failed, 0);
        EXPECT_GT(checks.passed, 1000);
      });
  }
}

}  // namespace
}  // namespace meshard
