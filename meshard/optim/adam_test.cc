#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>

#include "meshard/graph/sync.h"
#include "meshard/optim/fsdp.h"
#include "meshard/optim/gradients.h"
#include "meshard/optim/optim_testutil.h"
#include "meshard/optim/optimizers.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using AdamSteps = OnPlugin;

TwoTensors first_parameters() {
  return two_tensors({0.5f, -1, 2, 0.25f, -0.75f, 1, 3, -2}, {1, -1});
}

// The papers' formulas for one list of numbers, with weight decay for the first `decayed` of them.
std::vector<double> adam_in_double(const AdamW& o, double rate, int steps, std::size_t decayed) {
  std::vector<double> p = numbers_of(first_parameters()), m(p.size()), v(p.size());
  for (int k = 1; k <= steps; ++k) {
    std::vector<double> g = numbers_of(gradients_of(k));
    double c1 = 1 - std::pow(o.beta1, k), c2 = 1 - std::pow(o.beta2, k);
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      double change = o.form == AdamForm::kCorrected
                          ? m[i] / c1 / (std::sqrt(v[i] / c2) + o.epsilon)
                          : std::sqrt(c2) / c1 * m[i] / (std::sqrt(v[i]) + o.epsilon);
      if (i < decayed) change += o.weight_decay * p[i];
      p[i] -= rate * change;
    }
  }
  return p;
}

TEST_F(AdamSteps, TheStateIsMadeByOneProgram) {
  Tensor large = mark_sharding(zeros({128, 256}), Mesh({{"data", 4}}), P("data", none));
  sync(large);
  restart();
  AdamState<Tensor> of_large = init(Adam{}, large);
  EXPECT_EQ(done().launches, 1u) << "zeros of 64 KiB or more";
  Mesh mesh({{"data", 4}});
  TwoTensors params = first_parameters();
  params.weight = mark_sharding(params.weight, mesh, P("data", none));
  params.bias = mark_sharding(params.bias, mesh, P());
  sync(params);
  restart();
  AdamState<TwoTensors> state = init(Adam{}, params);
  EXPECT_EQ(done().launches, 0u) << "small zeros are sent";
  EXPECT_EQ(state.square.weight.sharding()->spec(), P("data", none));
  EXPECT_EQ(numbers_of(state.mean), std::vector<double>(10, 0));
}

template <class Optimizer>
std::vector<double> trained(const Optimizer& adam, int steps, TwoTensors params) {
  AdamState<TwoTensors> state = init(adam, params);
  auto step = jit([&](const TwoTensors& p, const AdamState<TwoTensors>& s, const TwoTensors& g) {
    return update(adam, p, g, s);
  });
  for (int k = 1; k <= steps; ++k) std::tie(params, state) = step(params, state, gradients_of(k));
  EXPECT_EQ(state.steps.template item<std::int32_t>(), steps);
  EXPECT_EQ(step.stats().traces, 1u);
  return numbers_of(params);
}

TEST_F(AdamSteps, AreThoseOfThePaper) {
  EXPECT_THAT(trained(Adam{.rate = 0.1}, 7, first_parameters()),
              testing::Pointwise(testing::DoubleNear(2e-6),
                                 adam_in_double({.weight_decay = 0}, 0.1, 7, 0)));
}

TEST_F(AdamSteps, EpsilonStandsWhereTheFormSays) {
  for (AdamForm form : {AdamForm::kCorrected, AdamForm::kEfficient}) {
    AdamW plain{.epsilon = 0.05, .weight_decay = 0, .form = form};
    EXPECT_THAT(trained(Adam{.rate = 0.1, .epsilon = 0.05, .form = form}, 3, first_parameters()),
                testing::Pointwise(testing::DoubleNear(2e-6), adam_in_double(plain, 0.1, 3, 0)));
  }
}

TEST_F(AdamSteps, WeightsDecayAndBiasesNeedNot) {
  AdamW adam{.rate = 0.1, .weight_decay = 0.5, .decay_rank = 2};
  EXPECT_THAT(trained(adam, 4, first_parameters()),
              testing::Pointwise(testing::DoubleNear(2e-6), adam_in_double(adam, 0.1, 4, 8)));
  adam.decay_rank = 0;
  EXPECT_THAT(trained(adam, 4, first_parameters()),
              testing::Pointwise(testing::DoubleNear(2e-6), adam_in_double(adam, 0.1, 4, 10)));
}

TEST_F(AdamSteps, AStateThatIsSplitFurtherGivesTheSameParameters) {
  Mesh mesh({{"data", 2}, {"model", 2}});
  TwoTensors params = first_parameters();
  params.weight = mark_sharding(params.weight, mesh, P(none, "model"));
  params.bias = mark_sharding(params.bias, mesh, P("model"));
  Adam adam{.rate = 0.1};
  AdamState<TwoTensors> state = init(adam, params, zero_layout(params, "data"));
  EXPECT_EQ(state.mean.weight.sharding()->spec(), P("data", "model"));
  EXPECT_EQ(state.mean.bias.sharding()->spec(), P("model")) << "has no dimension left";
  auto step = jit([&](const TwoTensors& p, const AdamState<TwoTensors>& s, const TwoTensors& g) {
    return update(adam, p, g, s);
  });
  for (int k = 1; k <= 3; ++k) std::tie(params, state) = step(params, state, gradients_of(k));
  EXPECT_EQ(params.weight.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(state.square.weight.sharding()->spec(), P("data", "model"));
  EXPECT_THAT(numbers_of(params),
              testing::Pointwise(testing::DoubleNear(2e-6),
                                 adam_in_double({.weight_decay = 0}, 0.1, 3, 0)));
  EXPECT_TRUE(
      throws_error([&] { zero_layout(params, "expert"); }, ErrorCode::kNotFound, {"expert"}));
  EXPECT_TRUE(throws_error([&] { zero_layout(first_parameters(), "data"); },
                           ErrorCode::kInvalidArgument, {"no sharding"}));
}

TEST_F(AdamSteps, MeansOfShortFloatsAreKeptInF32) {
  Tensor parameter = full({4}, 1.0, DType::bf16);
  AdamState<Tensor> state = init(Adam{}, parameter);
  EXPECT_EQ(state.mean.dtype(), DType::f32);
  auto [next, after] = update(Adam{.rate = 0.25}, parameter, full({4}, 2.0, DType::bf16), state);
  EXPECT_EQ(next.dtype(), DType::bf16);
  EXPECT_THAT(astype(next, DType::f32).to_vector<float>(), testing::Each(0.75f));
  EXPECT_THAT(after.square.to_vector<float>(), testing::Each(testing::FloatNear(4e-3f, 1e-8f)));
}

TEST_F(AdamSteps, RefuseWhatDoesNotGoTogether) {
  TwoTensors params = first_parameters(), other = params;
  other.bias = ones({3});
  AdamState<TwoTensors> state = init(Adam{}, params);
  EXPECT_TRUE(throws_error([&] { update(Adam{}, params, other, state); },
                           ErrorCode::kInvalidArgument, {"f32[2], but its gradient is f32[3]"}));
  using List = std::vector<Tensor>;
  using Map = std::map<std::string, Tensor>;
  const List two{ones({}), ones({})}, one{ones({})};
  EXPECT_TRUE(throws_error([&] { update(Adam{}, two, one, init(Adam{}, two)); },
                           ErrorCode::kInvalidArgument, {"missing from the gradients: [1] f32[]"}));
  EXPECT_TRUE(throws_error([&] { update(Adam{}, two, two, init(Adam{}, one)); },
                           ErrorCode::kInvalidArgument, {"missing from the means: [1] f32[]"}));
  const Map named{{"a", ones({})}, {"b", ones({})}}, typo{{"0", ones({})}, {"a", ones({})}};
  EXPECT_TRUE(throws_error(
      [&] { update(Adam{}, named, typo, init(Adam{}, named)); }, ErrorCode::kInvalidArgument,
      {"missing from the gradients: [\"b\"] f32[]; unexpected in the gradients: [\"0\"] f32[]"}));
  EXPECT_TRUE(throws_error([&] { update(Sgd{}, named, typo, init(Sgd{}, named)); },
                           ErrorCode::kInvalidArgument, {"missing from the gradients: [\"b\"]"}));
  EXPECT_TRUE(throws_error([&] { init(Adam{}, named, typo); }, ErrorCode::kInvalidArgument,
                           {"missing from the layouts: [\"b\"]"}));
  EXPECT_TRUE(throws_error([&] { chosen(full({}, true, DType::bool_), named, typo); },
                           ErrorCode::kInvalidArgument, {"[\"b\"]"}));
  EXPECT_TRUE(throws_error([&] { init(Adam{}, std::vector<Tensor>{arange(3)}); },
                           ErrorCode::kInvalidArgument, {"i32[3]"}));
}

}  // namespace
}  // namespace meshard::optim
