#include "meshard/graph/record_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/graph/record.h"
#include "meshard/graph/zero_evaluator_testutil.h"

namespace meshard {
namespace {

using internal::record_log;
using internal::RecordLog;

struct RecordLogTest : testing::Test {
  std::uint64_t begin = record_log.count();
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
};

TEST_F(RecordLogTest, HasTheNodesThatAreStillReferredTo) {
  Tensor a = test::plus(x, x);
  (void)test::plus(a, a);
  Tensor b = test::plus(a, x);
  EXPECT_EQ(record_log.count(), begin + 3);
  auto alive = record_log.alive_since(begin);
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].first, begin);
  EXPECT_EQ(alive[0].second, a.value());
  EXPECT_EQ(alive[1].first, begin + 2);
  EXPECT_EQ(alive[1].second, b.value());
  EXPECT_EQ(record_log.alive_since(begin + 1).size(), 1u);
}

TEST_F(RecordLogTest, DoesNotKeepNodesAlive) {
  Tensor a = test::plus(x, x);
  EXPECT_EQ(a.value()->references(), 1u);
  a = Tensor();
  EXPECT_TRUE(record_log.alive_since(begin).empty());
}

TEST_F(RecordLogTest, ASiteIsAnOpOfALine) {
  for (int i = 0; i < 2; ++i) (void)test::plus(x, x);
  (void)test::plus(x, x);
  EXPECT_EQ(record_log.site(begin), record_log.site(begin + 1));
  EXPECT_NE(record_log.site(begin), record_log.site(begin + 2));
}

TEST_F(RecordLogTest, TracedNodesAreNotInIt) {
  internal::TraceScope scope;
  Tensor a = test::plus(x, x);
  EXPECT_EQ(record_log.count(), begin);
}

TEST_F(RecordLogTest, KnowsTheLastNodes) {
  std::vector<Tensor> all;
  for (std::uint64_t i = 0; i < RecordLog::kSlots + 10; ++i) all.push_back(test::plus(x, x));
  auto alive = record_log.alive_since(0);
  ASSERT_EQ(alive.size(), RecordLog::kSlots);
  EXPECT_EQ(alive.back().second, all.back().value());
  EXPECT_EQ(alive.front().second, all[10].value());
}

TEST_F(RecordLogTest, NodesOfAnEndedThreadOutliveItsLog) {
  Tensor a, b;
  std::thread([&] { a = test::plus(x, x); }).join();
  // The second thread may use the log of the first one.
  std::thread([&] {
    EXPECT_TRUE(record_log.alive_since(0).empty());
    b = test::plus(x, x);
    a = Tensor();
    EXPECT_EQ(record_log.alive_since(0).size(), 1u);
  }).join();
  EXPECT_EQ(b.value()->references(), 1u);
}

// Other threads release nodes while the thread that recorded them looks for them.
TEST_F(RecordLogTest, AnyThreadMayReleaseNodes) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Tensor> all;
    for (int i = 0; i < 50; ++i) all.push_back(test::plus(x, x));
    std::atomic<bool> go{false};
    std::thread other([&] {
      while (!go.load()) std::this_thread::yield();
      for (Tensor& each : all) each = Tensor();
    });
    go = true;
    for (int i = 0; i < 20; ++i)
      for (const auto& [number, value] : record_log.alive_since(begin))
        EXPECT_EQ(value->operands().size(), 2u);
    other.join();
    EXPECT_TRUE(record_log.alive_since(begin).empty());
  }
}

struct AskedEvaluator final : test::ZeroEvaluator {
  void run_ahead(internal::RecordLog& log, SourceLocation) override {
    ++asked;
    log.check_at(log.count() + 10);
  }
  int asked = 0;
};

AskedEvaluator& asked_evaluator() {
  static AskedEvaluator instance;
  return instance;
}

struct RunAhead : testing::Test {
  RunAhead() {
    install_evaluator([]() -> Evaluator& { return asked_evaluator(); });
    asked_evaluator().asked = 0;
    record_log.check_at(record_log.count() + 10);
  }
  ~RunAhead() override {
    install_evaluator(nullptr);
    record_log.check_at(record_log.count() + RecordLog::kFirstCheck);
  }
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
};

TEST_F(RunAhead, TheEvaluatorIsAskedWhenTheLogIsDue) {
  for (int i = 0; i < 35; ++i) (void)test::plus(x, x);
  EXPECT_EQ(asked_evaluator().asked, 3);
}

TEST_F(RunAhead, NotInsideAFunctionThatMustOnlyBeRecorded) {
  {
    internal::KeepOperandsScope keep;
    for (int i = 0; i < 35; ++i) (void)test::plus(x, x);
    internal::TraceScope trace;
    for (int i = 0; i < 35; ++i) (void)test::plus(x, x);
  }
  EXPECT_EQ(asked_evaluator().asked, 0);
  (void)test::plus(x, x);
  EXPECT_EQ(asked_evaluator().asked, 1);
}

TEST_F(RunAhead, NotWhileTheEvaluatorRecords) {
  std::uint64_t count = record_log.count();
  internal::NoRunAheadScope scope;
  EXPECT_FALSE(scope.is_inner());
  EXPECT_TRUE(internal::NoRunAheadScope().is_inner());
  for (int i = 0; i < 35; ++i) (void)test::plus(x, x);
  EXPECT_EQ(asked_evaluator().asked, 0);
  EXPECT_EQ(record_log.count(), count);
}

}  // namespace
}  // namespace meshard
