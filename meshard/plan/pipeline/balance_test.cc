#include "meshard/plan/pipeline/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;

struct Balance {
  double largest = 0, squares = 0;
};

Balance balance_of(const std::vector<double>& costs, const std::vector<int>& counts) {
  Balance made;
  std::size_t next = 0;
  for (int count : counts) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += costs[next++];
    made.largest = std::max(made.largest, sum);
    made.squares += sum * sum;
  }
  return made;
}

// Tries all ways to divide the layers.
void all_divisions(int layers, int stages, std::vector<int>& counts,
                   const std::function<void(const std::vector<int>&)>& use) {
  if (stages == 1) {
    counts.push_back(layers);
    use(counts);
    counts.pop_back();
    return;
  }
  for (int first = 1; first <= layers - stages + 1; ++first) {
    counts.push_back(first);
    all_divisions(layers - first, stages - 1, counts, use);
    counts.pop_back();
  }
}

TEST(BalancedLayers, EqualsBruteForce) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    int layers = std::uniform_int_distribution<int>(1, 10)(random);
    int stages = std::uniform_int_distribution<int>(1, layers)(random);
    std::vector<double> costs;
    // Whole numbers, whose sums are exact; few of them, so that there are ties.
    for (int i = 0; i < layers; ++i)
      costs.push_back(std::uniform_int_distribution<int>(0, trial % 2 ? 3 : 100)(random));
    Balance best{std::numeric_limits<double>::infinity(), 0};
    std::vector<int> counts;
    all_divisions(layers, stages, counts, [&](const std::vector<int>& one) {
      Balance now = balance_of(costs, one);
      if (std::pair(now.largest, now.squares) < std::pair(best.largest, best.squares)) best = now;
    });
    std::vector<int> found = balanced_layers(costs, stages);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(stages));
    int sum = 0;
    for (int count : found) {
      EXPECT_GE(count, 1);
      sum += count;
    }
    ASSERT_EQ(sum, layers);
    Balance made = balance_of(costs, found);
    EXPECT_EQ(made.largest, best.largest) << testing::PrintToString(costs) << " into " << stages;
    EXPECT_EQ(made.squares, best.squares) << testing::PrintToString(costs) << " into " << stages;
  }
}

TEST(BalancedLayers, Examples) {
  EXPECT_THAT(balanced_layers(std::vector<double>(8, 1.0), 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(balanced_layers(std::vector<double>{1, 1, 1, 1, 1, 1, 4}, 3), ElementsAre(3, 3, 1));
  EXPECT_THAT(balanced_layers(std::vector<double>{3, 1, 1, 1, 4, 2}, 3), ElementsAre(3, 2, 1));
}

TEST(BalancedLayers, Refuses) {
  std::vector<double> costs{1, 2};
  EXPECT_TRUE(throws_error([&] { balanced_layers(costs, 3); }, ErrorCode::kInvalidArgument,
                           {"2 layers", "3 stages", "balance_test.cc:"}));
  costs[1] = -1;
  EXPECT_TRUE(throws_error([&] { balanced_layers(costs, 2); }, ErrorCode::kInvalidArgument,
                           {"the cost -1"}));
}

}  // namespace
}  // namespace meshard
