#include "meshard/processes/background_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>

#include "tests/support/thread_communicator.h"

namespace meshard {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// The messages of several processes, which are threads here.
struct InBackground : testing::Test {
  void begin(int count, const BackgroundMessagesOptions& options = {}) {
    communicators_ = make_thread_communicators(count);
    for (auto& each : communicators_)
      messages_.push_back(std::make_unique<BackgroundMessages>(*each, options));
  }
  BackgroundMessages& of(int process) { return *messages_[static_cast<std::size_t>(process)]; }
  static void send(BackgroundMessages& from, int to, int tag, int value) {
    auto data = std::make_shared<const int>(value);
    from.send({to, tag, data.get(), sizeof(int)}, data);
  }
  /// The outcome of a message that is received: its number, or the text of the error.
  static std::future<std::string> receive(BackgroundMessages& to, int from,
                                          std::string what = "x") {
    auto promise = std::make_shared<std::promise<std::string>>();
    auto value = std::make_shared<int>(-1);
    to.receive(from, value.get(), sizeof(int), std::move(what),
               [promise, value](const Result<void>& outcome) {
                 promise->set_value(outcome.ok() ? std::to_string(*value)
                                                 : std::string(outcome.error().what()));
               });
    return promise->get_future();
  }

  std::vector<std::unique_ptr<ProcessCommunicator>> communicators_;
  std::vector<std::unique_ptr<BackgroundMessages>> messages_;
};

TEST_F(InBackground, ArriveInTheirOrderWheneverTheyAreSent) {
  begin(2);
  std::vector<int> tags(10);
  for (int& tag : tags) tag = of(0).next_tag_to(1);
  std::vector<std::future<std::string>> got;
  for (int i = 0; i < 5; ++i) got.push_back(receive(of(1), 0));
  for (int i = 9; i >= 0; --i) send(of(0), 1, tags[static_cast<std::size_t>(i)], i);
  for (int i = 5; i < 10; ++i) got.push_back(receive(of(1), 0));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)].get(), std::to_string(i));
}

TEST_F(InBackground, TagsAreUsedInTurns) {
  begin(2, {.first_tag = 40, .tags = 3});
  for (int i = 0; i < 10; ++i) {
    int tag = of(0).next_tag_to(1);
    EXPECT_EQ(tag, 40 + i % 3);
    send(of(0), 1, tag, i);
    EXPECT_EQ(receive(of(1), 0).get(), std::to_string(i));
  }
}

TEST_F(InBackground, EachPairOfProcessesHasItsOwnOrder) {
  begin(4);
  std::vector<std::future<std::string>> got;
  for (int round = 0; round < 50; ++round)
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to) {
        if (from == to) continue;
        got.push_back(receive(of(to), from));
        send(of(from), to, of(from).next_tag_to(to), 100 * round + 10 * from + to);
      }
  std::size_t i = 0;
  for (int round = 0; round < 50; ++round)
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to)
        if (from != to) {
          EXPECT_EQ(got[i++].get(), std::to_string(100 * round + 10 * from + to));
        }
}

TEST_F(InBackground, WhatDoesNotComeIsAnErrorThatNamesItAndItsProcess) {
  begin(3, {.limit = milliseconds(200)});
  auto first = receive(of(1), 2, "f32[8] of stage 1"), second = receive(of(1), 0);
  std::string error = first.get();
  EXPECT_THAT(error, HasSubstr("deadline exceeded"));
  EXPECT_THAT(error, HasSubstr("f32[8] of stage 1 has not come from process 2 within 0.2 s"));
  EXPECT_EQ(second.get(), error);
  // The processes no longer agree on which message is next.
  EXPECT_EQ(receive(of(1), 0).get(), error);
  EXPECT_EQ(of(1).failure()->what(), error);
}

TEST_F(InBackground, TheFailureOfAnotherProcessEndsTheWait) {
  std::atomic<bool> has_failed = false;
  std::promise<std::string> reported;
  BackgroundMessagesOptions options;
  options.failure_of = [&](int process) -> std::optional<Error> {
    if (!has_failed || process != 0) return std::nullopt;
    return Error(ErrorCode::kAborted, "process 0 has failed");
  };
  options.on_failure = [&](const Error& error) { reported.set_value(error.what()); };
  begin(2, options);
  auto lost = receive(of(1), 0);
  has_failed = true;
  EXPECT_THAT(lost.get(), HasSubstr("process 0 has failed"));
  EXPECT_THAT(reported.get_future().get(), HasSubstr("process 0 has failed"));
}

TEST_F(InBackground, AFailureEndsWhatIsReceived) {
  begin(2);
  auto lost = receive(of(1), 0);
  of(1).fail(Error(ErrorCode::kCancelled, "a restart"));
  of(1).fail(Error(ErrorCode::kCancelled, "not the first"));
  EXPECT_THAT(lost.get(), HasSubstr("a restart"));
  EXPECT_THAT(receive(of(1), 0).get(), HasSubstr("a restart"));
}

TEST_F(InBackground, TheEndWaitsForWhatHasToBeSent) {
  begin(2);
  int tag = of(0).next_tag_to(1);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    send(of(0), 1, tag, 7);
  });
  of(0).finish();
  EXPECT_EQ(receive(of(1), 0).get(), "7");
  late.join();
  // What never comes is given up, and its function is not called.
  std::atomic<bool> is_called = false;
  int value = 0;
  of(1).receive(0, &value, sizeof value, "x", [&](const Result<void>&) { is_called = true; });
  of(1).finish();
  of(1).finish();
  EXPECT_FALSE(is_called);
}

}  // namespace
}  // namespace meshard
