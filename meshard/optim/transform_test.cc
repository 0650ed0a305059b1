#include "meshard/optim/transform.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/sync.h"
#include "meshard/optim/adaptive.h"
#include "meshard/optim/fsdp.h"
#include "meshard/optim/optim_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using Transforms = OnPlugin;
using testing::DoubleNear;
using testing::Each;
using testing::Pointwise;

TwoTensors start_of_transforms() {
  return two_tensors({0.5f, -1, 2, 0.25f, -0.75f, 1, 3, -2}, {1, -1});
}

template <class Options, class State>
auto jitted_update(const Options& options, const State&) {
  return jit([options](const TwoTensors& p, const TwoTensors& g, const State& s) {
    return update(options, p, g, s);
  });
}

// The parameters after some steps, and the state.
template <class Options>
auto after_steps(const Options& options, int steps, TwoTensors params, const TwoTensors& layout) {
  auto state = init(options, params, layout);
  auto step = jitted_update(options, state);
  for (int k = 1; k <= steps; ++k) std::tie(params, state) = step(params, gradients_of(k), state);
  return std::pair(params, state);
}

template <class Options>
std::vector<double> numbers_after(const Options& options, int steps) {
  TwoTensors params = start_of_transforms();
  return numbers_of(after_steps(options, steps, params, params).first);
}

std::vector<double> lion_in_double(const Lion& o, double rate, int steps) {
  std::vector<double> p = numbers_of(start_of_transforms()), m(p.size());
  for (int k = 1; k <= steps; ++k) {
    std::vector<double> g = numbers_of(gradients_of(k));
    for (std::size_t i = 0; i < p.size(); ++i) {
      double mixed = (1 - o.beta1) * g[i] + o.beta1 * m[i];
      p[i] -= rate * ((mixed > 0) - (mixed < 0) + (i < 8 ? o.weight_decay * p[i] : 0));
      m[i] = o.beta2 * m[i] + (1 - o.beta2) * g[i];
    }
  }
  return p;
}

TEST_F(Transforms, TakeTheStepsOfTheFormula) {
  Lion lion{.rate = 0.1, .weight_decay = 0.25, .decay_rank = 2};
  EXPECT_THAT(numbers_after(lion, 4), Pointwise(DoubleNear(2e-6), lion_in_double(lion, 0.1, 4)));
}

// Adam, AdamW and Sgd are the same inside a chain and by themselves.
TEST_F(Transforms, OptimizersAreTheSameInAChain) {
  AdamW adam{.rate = 0.1, .weight_decay = 0.5, .decay_rank = 2, .form = AdamForm::kEfficient};
  Sgd sgd{.rate = 0.1, .momentum = 0.75, .nesterov = true, .weight_decay = 0.25};
  EXPECT_THAT(numbers_after(Chain{{adam}}, 3), Pointwise(DoubleNear(2e-6), numbers_after(adam, 3)));
  EXPECT_THAT(numbers_after(Chain{{sgd}}, 3), Pointwise(DoubleNear(2e-6), numbers_after(sgd, 3)));
}

TEST_F(Transforms, LinksNameTheirSlots) {
  TwoTensors params = start_of_transforms();
  auto state = init(Chain{{ClipByValue{0.25}, Adam{}, Momentum{}}}, params);
  std::vector<std::string> names;
  for (const auto& each : state.slots) names.push_back(each.first);
  EXPECT_THAT(names, testing::ElementsAre("1.mean", "1.square", "2.velocity"));
  EXPECT_TRUE(throws_error([&] { update(Chain{{Adam{}}}, params, params, state); },
                           ErrorCode::kInvalidArgument, {"no \"0.mean\"", "\"1.mean\""}));
}

// A state that is split further than its parameters: the same numbers, kept in parts.
TEST_F(Transforms, StatesAreShardedAndSplitFurther) {
  Mesh mesh({{"data", 2}, {"model", 2}});
  TwoTensors params = start_of_transforms();
  params.weight = mark_sharding(params.weight, mesh, P(none, "model"));
  params.bias = mark_sharding(params.bias, mesh, P("model"));
  Chain chain{{ClipByGlobalNorm{1}, Lion{.rate = 0.1}}};
  auto [after, state] = after_steps(chain, 3, params, zero_layout(params, "data"));
  EXPECT_EQ(state.slots.at("1.mean").weight.sharding()->spec(), P("data", "model"));
  EXPECT_EQ(after.weight.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(state.steps.item<std::int32_t>(), 3);
  EXPECT_THAT(numbers_of(after), Pointwise(DoubleNear(2e-6), numbers_after(chain, 3)));

  // Adafactor's means over a dimension keep the axes of the others.
  Adafactor factored{.rate = 0.1, .smallest_factored = 2};
  auto [factored_after, means] = after_steps(factored, 2, params, zero_layout(params, "data"));
  EXPECT_EQ(means.slots.at("row").weight.shape(), Shape({2}));
  EXPECT_EQ(means.slots.at("row").weight.sharding()->spec(), P("model"));
  EXPECT_EQ(means.slots.at("column").weight.sharding()->spec(), P("data"));
  EXPECT_EQ(means.slots.at("square").weight.shape(), Shape({0}));
  EXPECT_EQ(means.slots.at("square").bias.sharding()->spec(), P("model"));
  EXPECT_THAT(numbers_of(factored_after), Pointwise(DoubleNear(1e-5), numbers_after(factored, 2)));
}

TEST_F(Transforms, AbstractParametersHaveAbstractStates) {
  Mesh mesh({{"x", 2}});
  Tensor w = abstract_tensor({4096, 4096}, DType::bf16, mesh, P("x"));
  auto state = init(Lion{}, w);
  EXPECT_TRUE(is_abstract(state.slots.at("mean")));
  EXPECT_EQ(state.slots.at("mean").dtype(), DType::f32);
  EXPECT_EQ(state.slots.at("mean").sharding()->spec(), P("x", none));
}

// A stack of layers takes the steps that the layers take one by one: norms and means are those of a
// layer.
TEST_F(Transforms, LayersAreSeparateParameters) {
  using Layers = StackedTensors;
  std::vector<float> numbers, slopes;
  for (int i = 0; i < 24; ++i) {
    numbers.push_back(static_cast<float>((i * 5) % 7 - 3) * (i < 12 ? 0.25f : 2.0f));
    slopes.push_back(static_cast<float>((i * 3) % 11 - 5) * (i < 12 ? 1.0f : 0.125f));
  }
  Layers params{from_host(numbers, {2, 4, 3})}, gradients{from_host(slopes, {2, 4, 3})};
  for (const Transform& each :
       {Transform(Lamb{.rate = 0.1}), Transform(Adafactor{.rate = 0.1, .smallest_factored = 2}),
        Transform(Chain{{ClipByBlock{0.25}, Sgd{.rate = 0.1}}})}) {
    std::vector<float> all = update(each, params, gradients, init(each, params))
                                 .first.stacked.to_vector<float>(),
                       one_by_one;
    for (int layer = 0; layer < 2; ++layer) {
      Tensor w = params.stacked[layer];
      Tensor after = update(each, w, gradients.stacked[layer], init(each, w)).first;
      for (float number : after.to_vector<float>()) one_by_one.push_back(number);
    }
    EXPECT_THAT(all, Pointwise(testing::FloatNear(2e-6f), one_by_one));
  }
}

TEST_F(Transforms, GroupsHaveTheirOwnOptimizers) {
  Groups groups{{{"weight", Lion{.rate = 0.1}}, {"*", Sgd{.rate = 0.1, .momentum = 0.5}}}};
  std::vector<double> all = numbers_after(groups, 3), lion = numbers_after(Lion{.rate = 0.1}, 3),
                      sgd = numbers_after(Sgd{.rate = 0.1, .momentum = 0.5}, 3);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_NEAR(all[i], i < 8 ? lion[i] : sgd[i], 2e-6) << i;
  TwoTensors params = start_of_transforms();
  auto state = init(groups, params);
  EXPECT_EQ(state.slots.at("mean").bias.shape(), Shape({0}));
  EXPECT_EQ(state.slots.at("velocity").bias.shape(), Shape({2}));

  EXPECT_TRUE(throws_error(
      [&] {
        init(Groups{{{"weights", Lion{}}, {"*", Lion{}}}}, params);
      },
      ErrorCode::kNotFound, {"weights", "nearest names", "\"weight\""}));
  EXPECT_TRUE(throws_error(
      [&] {
        init(Groups{{{"*", Lion{}}, {"bias", Freeze{}}}}, params);
      },
      ErrorCode::kNotFound, {"\"bias\"", "first match of no parameter"}));
  EXPECT_TRUE(throws_error(
      [&] {
        init(Groups{{{"bias", Lion{}}}}, params);
      },
      ErrorCode::kInvalidArgument, {"no pattern matches \"weight\""}));
}

TEST_F(Transforms, NamesArePathsWithDots) {
  EXPECT_EQ(internal::parameter_name(".blocks[:].wq"), "blocks.*.wq");
  EXPECT_EQ(internal::parameter_name("[\"a.b\"][3].w"), "a.b.3.w");
  EXPECT_EQ(internal::parameter_name(""), "value");
}

TEST_F(Transforms, StepsOfParts) {
  TwoTensors params = start_of_transforms();
  MultiSteps options{Adam{.rate = 0.1}, 2};
  auto state = init(options, params);
  auto step = jitted_update(options, state);
  TwoTensors next;
  std::tie(next, state) = step(params, gradients_of(1), state);
  EXPECT_EQ(numbers_of(next), numbers_of(params)) << "in the middle";
  std::tie(next, state) = step(next, gradients_of(2), state);
  TwoTensors mean{(gradients_of(1).weight + gradients_of(2).weight) / 2,
                  (gradients_of(1).bias + gradients_of(2).bias) / 2};
  auto expected = update(Adam{.rate = 0.1}, params, mean, init(Adam{}, params)).first;
  EXPECT_THAT(numbers_of(next), Pointwise(DoubleNear(2e-6), numbers_of(expected)));
  EXPECT_THAT(numbers_of(state.slots.at("accumulated")), Each(0));
  EXPECT_TRUE(throws_error(
      [&] {
        init(MultiSteps{Adam{}, 0}, params);
      },
      ErrorCode::kInvalidArgument, {"`every` must be above 0"}));
}

TEST_F(Transforms, StepsWithoutFiniteGradientsAreSkipped) {
  TwoTensors params = start_of_transforms(), bad = gradients_of(1);
  bad.bias = from_host(std::vector<float>{NAN, 1}, {2});
  ApplyIfFinite options{Adam{.rate = 0.1}, 1};
  auto state = init(options, params);
  auto step = jitted_update(options, state);
  TwoTensors next;
  std::tie(next, state) = step(params, bad, state);
  EXPECT_EQ(numbers_of(next), numbers_of(params));
  EXPECT_THAT(numbers_of(state.slots.at("inner.mean")), Each(0));
  EXPECT_EQ(state.numbers.at("in_a_row").item<int>(), 1);
  std::tie(next, state) = step(next, gradients_of(1), state);
  EXPECT_EQ(state.numbers.at("in_a_row").item<int>(), 0);
  EXPECT_EQ(state.numbers.at("total").item<int>(), 1);
  EXPECT_THAT(numbers_of(next), Pointwise(DoubleNear(2e-6), numbers_after(Adam{.rate = 0.1}, 1)))
      << "the skipped step does not count";
  for (int i = 0; i < 2; ++i) std::tie(next, state) = step(next, bad, state);
  EXPECT_TRUE(std::isnan(numbers_of(next)[8])) << "the second in a row is taken";
}

// A change of an eighth of a unit in the last place is lost by rounding to nearest.
TEST_F(Transforms, RoundingAtRandomKeepsSmallChangesOnAverage) {
  Tensor params = ones({4096}, DType::bf16), gradients = full({4096}, -std::ldexp(1.0, -10));
  auto mean_after = [&](const Chain& options) {
    auto state = init(options, params);
    auto step =
        jit([&](Tensor p, TransformState<Tensor> s) { return update(options, p, gradients, s); });
    Tensor p = params;
    for (int k = 0; k < 4; ++k) std::tie(p, state) = step(p, state);
    EXPECT_EQ(p.dtype(), DType::bf16);
    return mean(astype(p, DType::f32)).item<float>() - 1;
  };
  EXPECT_EQ(mean_after({{Sgd{.rate = 1}}}), 0);
  // Each of the 4 steps adds 2^-7 with probability 1/8: standard deviation 2^-7 sqrt(4 * 7/64 /
  // 4096).
  float deviation = std::ldexp(1.0f, -7) * std::sqrt(4 * 7.0f / 64 / 4096);
  EXPECT_NEAR(mean_after({{Sgd{.rate = 1}, StochasticRounding{1}}}), std::ldexp(1.0f, -8),
              5 * deviation);
  EXPECT_NE(mean_after({{Sgd{.rate = 1}, StochasticRounding{1}}}),
            mean_after({{Sgd{.rate = 1}, StochasticRounding{2}}}));
  EXPECT_TRUE(throws_error([] { init(StochasticRounding{}, full({2}, 1.0, DType::f16)); },
                           ErrorCode::kInvalidArgument, {"f16[2]", "only bf16"}));
}

TEST_F(Transforms, RefuseWhatDoesNotGoTogether) {
  TwoTensors params = start_of_transforms(), other = params;
  other.bias = ones({3});
  auto state = init(Lion{}, params);
  EXPECT_TRUE(throws_error([&] { update(Lion{}, params, other, state); },
                           ErrorCode::kInvalidArgument, {"f32[2], but its gradient is f32[3]"}));
  EXPECT_TRUE(
      throws_error([&] { init(Lion{}, params, other); }, ErrorCode::kInvalidArgument, {"f32[3]"}));
  EXPECT_TRUE(throws_error([&] { init(Lion{}, arange(3)); }, ErrorCode::kInvalidArgument,
                           {"only floats can be trained"}));
  EXPECT_TRUE(throws_error([&] { update(ClipByValue{0}, params, params, init(Freeze{}, params)); },
                           ErrorCode::kInvalidArgument, {"the limit must be above 0, not 0"}));
}

}  // namespace
}  // namespace meshard::optim
