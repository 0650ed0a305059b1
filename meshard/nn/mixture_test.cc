#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "meshard/autodiff/grad.h"
#include "meshard/nn/mlp.h"
#include "meshard/nn/nn_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Mixtures = OnPlugin;

constexpr int kWidth = 3, kHidden = 4, kExperts = 4;

Mixture varied_mixture() {
  return {varied({kWidth, kExperts}, 2), varied({kExperts, kWidth, kHidden}, 1, 1),
          varied({kExperts, kHidden, kWidth}, 1, 2)};
}

std::vector<double> softmax_of(std::vector<double> scores) {
  double total = 0;
  for (double& score : scores) total += score = std::exp(score);
  for (double& score : scores) score /= total;
  return scores;
}

// Computed token by token: experts with free capacity, first choices before second ones.
std::vector<double> token_by_token(const Mixture& p, const Tensor& x_, int used, int places) {
  Numbers x(x_), router(p.router), up(p.up), down(p.down);
  int batch = int(x_.dim(0)), time = int(x_.dim(1));
  std::vector<double> out(static_cast<std::size_t>(batch * time * kWidth));
  for (int b = 0; b < batch; ++b) {
    std::vector<int> taken(kExperts);
    for (int choice = 0; choice < used; ++choice)
      for (int t = 0; t < time; ++t) {
        std::vector<double> scores(kExperts);
        for (int e = 0; e < kExperts; ++e)
          for (int d = 0; d < kWidth; ++d)
            scores[static_cast<std::size_t>(e)] += x({b, t, d}) * router({d, e});
        std::vector<double> chances = softmax_of(scores);
        std::vector<std::size_t> order(kExperts);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t i, std::size_t j) { return chances[i] > chances[j]; });
        // The weight of a single expert is its probability; the weights of several sum to 1.
        double total = used == 1 ? 1 : 0;
        for (int i = 0; used > 1 && i < used; ++i)
          total += chances[order[static_cast<std::size_t>(i)]];
        std::size_t expert = order[static_cast<std::size_t>(choice)];
        if (taken[expert]++ >= places) continue;
        auto e = static_cast<std::int64_t>(expert);
        for (int h = 0; h < kHidden; ++h) {
          double hidden = 0;
          for (int d = 0; d < kWidth; ++d) hidden += x({b, t, d}) * up({e, d, h});
          for (int d = 0; d < kWidth; ++d)
            out[static_cast<std::size_t>((b * time + t) * kWidth + d)] +=
                chances[expert] / total * std::max(hidden, 0.0) * down({e, h, d});
        }
      }
  }
  return out;
}

TEST_F(Mixtures, SendEachTokenToItsExperts) {
  Mixture params = varied_mixture();
  Tensor x = varied({2, 6, kWidth}, 1, 7);
  for (int used : {1, 2, 4}) {
    MixtureOptions options{.used = used, .capacity = 4, .activation = activation::relu};
    expect_near(mixture(params, x, options).value, token_by_token(params, x, used, 6 * used), 1e-5);
  }
}

TEST_F(Mixtures, TokensPassByAFullExpert) {
  Mixture params = varied_mixture();
  Tensor x = varied({2, 6, kWidth}, 1, 7);
  // Half of an even share: 0.5 * 6 * 2 / 4 = 1.5, rounded up.
  MixtureOptions options{.used = 2, .capacity = 0.5, .activation = activation::relu};
  std::vector<double> expected = token_by_token(params, x, 2, 2);
  EXPECT_NE(expected, token_by_token(params, x, 2, 12)) << "or nothing is tested";
  expect_near(mixture(params, x, options).value, expected, 1e-5);
}

TEST_F(Mixtures, TheRouterLearnsFromTheValueOfOneExpert) {
  Mixture params = varied_mixture();
  Tensor x = varied({1, 4, kWidth}, 1, 7);
  auto loss = [&](const Tensor& router) {
    Mixture with = params;
    with.router = router;
    MixtureOptions options{.used = 1, .capacity = 4, .activation = activation::relu};
    return sum(square(mixture(with, x, options).value));
  };
  std::vector<float> slope = grad(loss)(params.router).to_vector<float>();
  std::vector<float> router = params.router.to_vector<float>();
  auto moved = [&](std::size_t i, float by) {
    std::vector<float> other = router;
    other[i] += by;
    return loss(from_host(other, {kWidth, kExperts})).item<float>();
  };
  double largest = 0;
  for (std::size_t i = 0; i < router.size(); ++i) {
    double difference = (moved(i, 1e-2f) - moved(i, -1e-2f)) / 2e-2;
    EXPECT_NEAR(slope[i], difference, 2e-3 * (1 + std::abs(difference))) << i;
    largest = std::max(largest, std::abs(difference));
  }
  EXPECT_GT(largest, 1e-2) << "or nothing is tested";
}

TEST_F(Mixtures, BalanceLossIsOneForEvenUse) {
  Mixture params = varied_mixture();
  params.router = zeros({kWidth, kExperts});
  Tensor x = varied({2, 6, kWidth});
  // All probabilities are 1/4, and the fractions of first choices sum to 1, whatever they are.
  EXPECT_NEAR(mixture(params, x).balance_loss.item<float>(), 1, 1e-6);
  // All tokens go to one expert with certainty: 4.
  params.router = concat({full({kWidth, 1}, 50.0), zeros({kWidth, 3})}, 1);
  EXPECT_NEAR(mixture(params, ones({1, 6, kWidth})).balance_loss.item<float>(), 4, 1e-5);
}

TEST_F(Mixtures, ShardedAreTheSame) {
  AxisRules rules(Mesh({{"data", 4}}), {{"expert", "data"}, {"batch", "data"}});
  auto made = [](Maker& make) { return make_mixture(make, 8, 16, 4); };
  Mixture one = create({}, 2, made), four = create(rules, 2, made);
  EXPECT_EQ(four.up.sharding()->spec(), P("data", none, none));
  Tensor x = varied({4, 8, 8});
  auto loss_with = [](const AxisRules& with) {
    return jit(value_and_grad([with](const Mixture& p, const Tensor& in) {
      MixtureResult out = mixture(p, in, {.rules = with});
      return sum(square(out.value)) + out.balance_loss;
    }));
  };
  auto [loss_one, gradient_one] = loss_with({})(one, x);
  auto [loss_four, gradient_four] = loss_with(rules)(four, rules.mark(x, P("batch", none, none)));
  EXPECT_NEAR(loss_one.item<float>(), loss_four.item<float>(), 1e-3);
  expect_same(gradient_four.router, gradient_one.router, 1e-4);
  expect_same(gradient_four.down, gradient_one.down, 1e-4);
}

TEST_F(Mixtures, ATokenUsesSomeOfTheExperts) {
  EXPECT_TRUE(throws_error(
      [] {
        mixture(varied_mixture(), ones({1, 2, kWidth}), {.used = 5});
      },
      ErrorCode::kInvalidArgument, {"5 of 4 experts"}));
}

TEST_F(Mixtures, ComplexParametersAreRefused) {
  EXPECT_TRUE(throws_error(
      [] {
        Mixture params = varied_mixture();
        params.up = complex(params.up, params.up);
        mixture(params, ones({1, 2, kWidth}));
      },
      ErrorCode::kInvalidArgument, {"real parameters", "c64"}));
}

}  // namespace
}  // namespace meshard::nn
