#include <gtest/gtest.h>

#include <functional>

#include "meshard/base/advice.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/graph/record.h"
#include "meshard/graph/zero_evaluator_testutil.h"

namespace meshard {
namespace {

struct Pending : testing::Test {
  Pending() {
    static test::ZeroEvaluator zeros;
    install_evaluator([]() -> Evaluator& { return zeros; });
    set_advice_handler([this](const Advice& advice) {
      if (advice.topic == "lazy.pending") heard.push_back(advice.to_string());
    });
  }
  ~Pending() override {
    set_advice_handler(nullptr);
    install_evaluator(nullptr);
  }
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  std::vector<std::string> heard;
};

TEST_F(Pending, AChainThatGrowsWithoutEndIsReportedOnceWithItsLine) {
  Tensor sum = x;
  std::uint32_t line = __LINE__ + 1;
  for (std::uint32_t i = 0; i < 3 * kLongChain; ++i) sum = test::plus(sum, x);
  ASSERT_EQ(heard.size(), 1u);
  // The first node has depth 0, so a chain of depth kLongChain has one more node.
  std::string expected = cat("pending_test.cc:", line,
                             ": [lazy] the value recorded here depends on ", kLongChain + 1, " ");
  EXPECT_TRUE(heard[0].starts_with(expected)) << heard[0];
}

// Counts the nodes that the checks of long chains visit.
struct CountingEvaluator final : test::ZeroEvaluator {
  std::size_t count_pending(const Value& value) override {
    std::size_t pending = Evaluator::count_pending(value);
    visited += pending;
    return pending;
  }
  std::size_t visited = 0;
};

TEST_F(Pending, AllChecksOfAChainTogetherVisitFewNodes) {
  static CountingEvaluator counting;
  install_evaluator([]() -> Evaluator& { return counting; });
  constexpr std::uint32_t kNodes = 32 * kLongChain;
  Tensor sum = x;
  for (std::uint32_t i = 0; i <= kNodes; ++i) sum = test::plus(sum, x);
  EXPECT_EQ(heard.size(), 1u);
  // Checks at 1, 2, 4, ... 32 times kLongChain: less than two visits for each node.
  EXPECT_GT(counting.visited, kNodes);
  EXPECT_LT(counting.visited, 2 * kNodes);
}

TEST_F(Pending, WhatIsReadNowAndThenIsNot) {
  Tensor sum = x;
  for (std::uint32_t i = 0; i < 2 * kLongChain; ++i) {
    sum = test::plus(sum, x);
    if (i % 100 == 0) compute({sum});
  }
  EXPECT_TRUE(heard.empty());
}

// Like a loop that prints the loss of the previous step: it records one step before it reads.
TEST_F(Pending, NorIsAChainOfWhichTheEndAloneIsUnread) {
  Tensor before = x;
  for (std::uint32_t i = 0; i < 2 * kLongChain; ++i) {
    Tensor now = test::plus(before, x);
    compute({before});
    before = now;
  }
  EXPECT_TRUE(heard.empty());
}

TEST_F(Pending, NorWhatIsTraced) {
  internal::TraceScope scope;
  Tensor sum = make_parameter({DType::f32, {2}}, std::nullopt, {});
  for (std::uint32_t i = 0; i < 2 * kLongChain; ++i) sum = test::plus(sum, sum);
  EXPECT_TRUE(heard.empty());
}

}  // namespace
}  // namespace meshard
