// The end of a process: tests/processes/check_checkpoints.py.
#include "meshard/io/internal/save_queue.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace meshard::io::internal {
namespace {

SaveQueue& queue() { return SaveQueue::of_process(); }

TEST(SaveQueue, SavesAreInOrderAndOutcomesAreTheirOwn) {
  std::vector<int> order;
  std::vector<std::shared_ptr<SaveOutcome>> outcomes;
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future().share();
  for (int i = 0; i < 4; ++i)
    outcomes.push_back(queue().add("p", "k", false, [&, i](auto&) -> Result<void> {
      may_go.wait();
      order.push_back(i);
      if (i == 1) return Error(ErrorCode::kDataLoss, "one");
      if (i == 2) throw Error(ErrorCode::kAborted, "two");
      return {};
    }));
  EXPECT_FALSE(outcomes[0]->done());
  queue().wait_for("another");
  go.set_value();
  queue().wait_for("k");
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  for (const auto& each : outcomes) EXPECT_TRUE(each->done());
  outcomes[0]->wait().value();
  EXPECT_EQ(outcomes[1]->wait().error().code(), ErrorCode::kDataLoss);
  // The error of the third is still unknown to everybody.
  Error error = queue().finish().error();
  EXPECT_EQ(error.message(), "two");
  EXPECT_EQ(outcomes[2]->wait().error().message(), "two");
  queue().finish().value();
}

TEST(SaveQueue, AllErrorsThatNobodyHasAskedForAreReportedTogether) {
  (void)queue().add_failed("first", Error(ErrorCode::kDataLoss, "one"));
  (void)queue().add("second", "k", false,
                    [](auto&) -> Result<void> { return Error(ErrorCode::kAborted, "two"); });
  std::string text = queue().finish().error().to_string();
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("one"), testing::HasSubstr("two")));
  queue().finish().value();
}

TEST(SaveQueue, AProcessThatFailsCompletesOnlyWhatNeedsNoOthers) {
  std::promise<void> come, begun;
  auto all_are_here = queue().add("a", "a", true, [&](auto& all_have_come) -> Result<void> {
    all_have_come();
    begun.set_value();
    come.get_future().wait();
    return {};
  });
  begun.get_future().wait();
  auto others = queue().add("b", "b", true, [](auto&) -> Result<void> { return {}; });
  auto own = queue().add("c", "c", false, [](auto&) -> Result<void> { return {}; });
  std::thread later([&] {
    while (!others->done()) std::this_thread::yield();
    come.set_value();
  });
  Result<void> ended = queue().finish_without_others();
  later.join();
  EXPECT_THAT(ended.error().message(), testing::HasSubstr("before all others had come"));
  all_are_here->wait().value();
  own->wait().value();
  EXPECT_EQ(others->wait().error().code(), ErrorCode::kCancelled);
  queue().finish().value();
}

TEST(SaveQueue, AForkedChildHasNothingToWaitFor) {
  std::promise<void> go;
  auto outcome = queue().add("p", "k", false, [&](auto&) -> Result<void> {
    go.get_future().wait();
    return {};
  });
  pid_t child = ::fork();
  if (child == 0) {
    queue().wait_for("k");
    bool ok = queue().add("q", "k", false, [](auto&) { return Result<void>(); })->wait().ok();
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  go.set_value();
  outcome->wait().value();
}

}  // namespace
}  // namespace meshard::io::internal
