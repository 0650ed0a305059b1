#include "meshard/nn/norm.h"

#include <cmath>

#include "meshard/nn/nn_testutil.h"

namespace meshard::nn {
namespace {

using Norms = OnPlugin;

TEST_F(Norms, AreTheirFormulas) {
  Tensor x = varied({3, 8}, 2), scale = varied({8}, 1, 3), bias = varied({8}, 1, 7);
  Numbers in(x), s(scale), b(bias);
  std::vector<double> layer, rms;
  for (int i = 0; i < 3; ++i) {
    double mean = 0, variance = 0, size = 0;
    for (int j = 0; j < 8; ++j) mean += in({i, j}) / 8;
    for (int j = 0; j < 8; ++j) variance += (in({i, j}) - mean) * (in({i, j}) - mean) / 8;
    for (int j = 0; j < 8; ++j) size += in({i, j}) * in({i, j}) / 8;
    for (int j = 0; j < 8; ++j) {
      layer.push_back((in({i, j}) - mean) / std::sqrt(variance + 0.1) * s({j}) + b({j}));
      rms.push_back(in({i, j}) / std::sqrt(size + 0.1) * s({j}));
    }
  }
  expect_near(layer_norm({scale, bias}, x, 0.1), layer);
  expect_near(rms_norm({scale}, x, 0.1), rms);
  EXPECT_EQ(rms_norm({scale}, astype(x, DType::bf16)).dtype(), DType::bf16);
}

TEST_F(Norms, BeginWithOnesAndZeros) {
  LayerNorm layer = create({}, 1, [](Maker& make) { return make_layer_norm(make, 4); });
  EXPECT_EQ(layer.scale.to_vector<float>(), std::vector<float>(4, 1));
  EXPECT_EQ(layer.bias.to_vector<float>(), std::vector<float>(4, 0));
  RmsNorm rms = create({}, 1, [](Maker& make) { return make_rms_norm(make, 4); });
  EXPECT_EQ(rms.scale.to_vector<float>(), std::vector<float>(4, 1));
}

}  // namespace
}  // namespace meshard::nn
