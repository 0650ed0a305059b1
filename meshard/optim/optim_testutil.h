// Optimizers computed in double by plain loops, and a small structure to train.
#pragma once
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/structure.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard::optim {

/// Two parameters: a matrix and a bias.
struct TwoTensors {
  Tensor weight, bias;
  MESHARD_FIELDS(weight, bias)
};

/// Layers whose only parameters are tensors, stacked as in nn::Layers.
struct StackedTensors {
  using StackedPart = Tensor;
  Tensor stacked;
  MESHARD_FIELDS(stacked)
};

inline TwoTensors two_tensors(std::vector<float> weight, std::vector<float> bias) {
  return {from_host(std::move(weight), {4, 2}), from_host(std::move(bias), {2})};
}

inline std::vector<double> numbers_of(const TwoTensors& value) {
  std::vector<double> out;
  for (const Tensor& tensor : {value.weight, value.bias})
    for (float number : tensor.to_vector<float>()) out.push_back(number);
  return out;
}

/// Gradients of step k: fixed numbers of both signs, and a zero.
inline TwoTensors gradients_of(int k) {
  auto number = [k](int i) { return static_cast<float>((i * 7 + k * 3) % 11 - 5) * 0.125f; };
  std::vector<float> weight, bias;
  for (int i = 0; i < 8; ++i) weight.push_back(number(i));
  for (int i = 8; i < 10; ++i) bias.push_back(number(i));
  return two_tensors(weight, bias);
}

}  // namespace meshard::optim
