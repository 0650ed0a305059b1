#include "meshard/nn/mlp.h"

#include <gmock/gmock.h>

#include <cmath>

#include "meshard/nn/nn_testutil.h"

namespace meshard::nn {
namespace {

using Mlps = OnPlugin;

TEST_F(Mlps, AreTheirFormulas) {
  Mlp params{{varied({3, 5}), varied({5}, 1, 1)}, {varied({5, 3}, 1, 2), varied({3}, 1, 3)}};
  GatedMlp gated{
      {varied({3, 5}, 1, 4), {}}, {varied({3, 5}, 1, 5), {}}, {varied({5, 3}, 1, 6), {}}};
  Tensor x = varied({2, 3}, 1, 8);
  Numbers in(x), up(params.up.weight), b1(*params.up.bias), down(params.down.weight),
      b2(*params.down.bias), g(gated.gate.weight), u(gated.up.weight), d(gated.down.weight);
  std::vector<double> expected, with_gate;
  for (int i = 0; i < 2; ++i)
    for (int o = 0; o < 3; ++o) {
      double sum = b2({o}), gated_sum = 0;
      for (int h = 0; h < 5; ++h) {
        double hidden = b1({h}), gate = 0, value = 0;
        for (int k = 0; k < 3; ++k) {
          hidden += in({i, k}) * up({k, h});
          gate += in({i, k}) * g({k, h});
          value += in({i, k}) * u({k, h});
        }
        sum += std::max(hidden, 0.0) * down({h, o});
        gated_sum += gate / (1 + std::exp(-gate)) * value * d({h, o});
      }
      expected.push_back(sum);
      with_gate.push_back(gated_sum);
    }
  expect_near(mlp(params, x, activation::relu), expected);
  expect_near(gated_mlp(gated, x), with_gate);
}

TEST_F(Mlps, AreSplitByColumnsAndThenByRows) {
  AxisRules rules(Mesh({{"model", 4}}), {{"hidden", "model"}});
  GatedMlp params = create(rules, 1, [](Maker& make) { return make_gated_mlp(make, 8, 16); });
  EXPECT_EQ(params.gate.weight.sharding()->spec(), P(none, "model"));
  EXPECT_EQ(params.down.weight.sharding()->spec(), P("model", none));
  EXPECT_FALSE(params.up.bias);
  GatedMlp alone = create({}, 1, [](Maker& make) { return make_gated_mlp(make, 8, 16); });
  Tensor x = varied({4, 8});
  auto apply = jit([](const GatedMlp& p, const Tensor& in) { return gated_mlp(p, in); });
  expect_same(apply(params, x), apply(alone, x), 1e-5);
}

}  // namespace
}  // namespace meshard::nn
