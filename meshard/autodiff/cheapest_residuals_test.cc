#include "meshard/autodiff/cheapest_residuals.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

class CheapestResiduals : public ::testing::Test {
 protected:
  static Tensor parameter(Shape shape, DType dtype = DType::f32) {
    return make_parameter({dtype, std::move(shape)}, std::nullopt, {});
  }
  static ValueSet values(const std::vector<Tensor>& tensors) {
    ValueSet all;
    for (const Tensor& tensor : tensors) all.insert(tensor.value());
    return all;
  }
  static ValueSet chosen(const std::vector<Tensor>& needed,
                         const std::vector<Tensor>& available = {}) {
    ValueSet there = values(available);
    return cheapest_residuals(values(needed),
                              [&](const Value& value) { return there.contains(value); });
  }

  internal::TraceScope scope_;
};

TEST_F(CheapestResiduals, ComputesFunctionsOfKeptValuesAgain) {
  Tensor a = parameter({8}), b = parameter({8});
  Tensor gate = logistic(a), swish = a * gate, product = swish * b;
  EXPECT_EQ(chosen({a, gate, swish, b, product}), values({a, b}));
  EXPECT_EQ(chosen({a, gate, swish, b, product}, {a}), values({b}));
  // If only the last product is needed, two operands would have to be kept instead of it.
  EXPECT_EQ(chosen({product}), values({product}));
  EXPECT_EQ(chosen({product}, {a, b}), values({}));
}

TEST_F(CheapestResiduals, KeepsTheSmallestOfAChain) {
  Tensor x = parameter({8});
  Tensor mask = x > 0;
  EXPECT_EQ(chosen({astype(mask, DType::f32)}), values({mask}));
  EXPECT_EQ(chosen({astype(mask, DType::f32), x * x}), values({x}));
  Tensor total = sum(x) + 1, spread = broadcast_to(total, {8});
  EXPECT_EQ(chosen({exp(spread)}), values({total}));
}

TEST_F(CheapestResiduals, KeepsWhatCostsMoreToComputeThanToStore) {
  Tensor x = parameter({8});
  Tensor series = lgamma(x);
  EXPECT_EQ(chosen({x, series}), values({x, series}));
  Tensor summed = cumulative_sum(x, 0);
  EXPECT_EQ(chosen({x, summed}), values({x, summed}));
  // f32 elements have 4 bytes: three functions and one product cost 3 1/8, five cost more than 4.
  Tensor few = sin(cos(tanh(x))) * x, many = sin(cos(tanh(exp(sqrt(x)))));
  EXPECT_EQ(chosen({x, few}), values({x}));
  EXPECT_EQ(chosen({x, many}), values({x, many}));
  // Random bits take about a hundred integer operations per element.
  Tensor key = parameter({2}, DType::u32);
  Tensor kept = random::bernoulli(key, 0.5, {8});
  ValueSet both = chosen({x, key, kept});
  EXPECT_TRUE(both.contains(kept.value()));
  EXPECT_EQ(both.size(), 3u);
}

TEST_F(CheapestResiduals, NamesAndShapesCostNothing) {
  Tensor x = parameter({2, 4});
  Tensor h = matmul(x, permute_dims(x, {1, 0}));
  EXPECT_EQ(chosen({checkpoint_name(reshape(h, {4}), "h")}), values({h}));
}

// Each value is kept, or computed again from values for which the same holds. The least cost over
// all choices is found by trying them.
TEST_F(CheapestResiduals, CostsTheLeastOfAllChoices) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    std::vector<Tensor> all{parameter({8}), parameter({8})};
    // Costs of keeping and of computing, in eighths of a byte per element; -1: never.
    std::vector<std::pair<int, int>> costs{{32, -1}, {32, -1}};
    std::vector<std::pair<std::size_t, std::size_t>> operands{{0, 0}, {0, 0}};
    while (all.size() < 10) {
      std::size_t a = static_cast<std::size_t>(random.between(0, std::ssize(all) - 1));
      std::size_t b = static_cast<std::size_t>(random.between(0, std::ssize(all) - 1));
      switch (random.between(0, 3)) {
        case 0: all.push_back(all[a] + all[b]), costs.push_back({32, 1}); break;
        case 1: all.push_back(all[a] / all[b]), costs.push_back({32, 8}); break;
        case 2: all.push_back(cumulative_sum(all[b = a], 0)), costs.push_back({32, -1}); break;
        default: all.push_back(lgamma(all[b = a])), costs.push_back({32, 128});
      }
      operands.emplace_back(a, b);
    }
    std::vector<bool> needed;
    std::vector<Tensor> wanted;
    for (const Tensor& each : all) {
      needed.push_back(random.between(0, 2) == 0);
      if (needed.back()) wanted.push_back(each);
    }
    // The cost of the choice to keep the values of `kept`, or -1.
    auto cost_of = [&](const std::vector<bool>& kept) {
      std::vector<bool> open = needed;
      int cost = 0;
      for (std::size_t i = all.size(); i-- > 0;) {
        if (!open[i]) continue;
        if (!kept[i] && costs[i].second < 0) return -1;
        cost += kept[i] ? costs[i].first : costs[i].second;
        if (!kept[i]) open[operands[i].first] = open[operands[i].second] = true;
      }
      return cost;
    };
    int least = -1;
    for (unsigned bits = 0; bits < 1u << all.size(); ++bits) {
      std::vector<bool> kept;
      for (std::size_t i = 0; i < all.size(); ++i) kept.push_back((bits >> i) % 2 == 1);
      int cost = cost_of(kept);
      if (cost >= 0 && (least < 0 || cost < least)) least = cost;
    }
    ValueSet found = chosen(wanted);
    std::vector<bool> kept;
    for (const Tensor& each : all) kept.push_back(found.contains(each.value()));
    EXPECT_EQ(cost_of(kept), least);
  }
}

TEST_F(CheapestResiduals, LongChains) {
  Tensor x = parameter({8});
  std::vector<Tensor> all{x};
  for (int i = 0; i < 20'000; ++i) all.push_back(sin(all.back()) + 1);
  // Computing one link again costs less than keeping it.
  EXPECT_EQ(chosen(all), values({x}));
  // Nothing between is needed.
  EXPECT_EQ(chosen({x, all.back()}), values({x, all.back()}));
}

}  // namespace
}  // namespace meshard
