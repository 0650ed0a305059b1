// What a training run gives, to compare runs.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The losses of the steps, and all parameters at the end, one vector for each tensor.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> parameters;

  void add_parameters(const std::vector<Tensor>& tensors) {
    for (const Tensor& each : tensors) parameters.push_back(each.to_vector<float>());
  }
};

/// The largest difference between two lists, divided by the largest magnitude of the expected one.
template <class Numbers>
double deviation(const Numbers& got, const Numbers& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double most = 0, scale = 0;
  for (std::size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    double difference = std::abs(double{got[i]} - double{expected[i]});
    if (!(difference <= most)) most = difference;  // also if it is not a number
    scale = std::max(scale, std::abs(double{expected[i]}));
  }
  return most == 0 ? 0 : most / scale;
}

/// Expects that losses and parameters deviate by at most `allowed`.
inline void expect_near(const Outcome& got, const Outcome& expected, double allowed) {
  EXPECT_LE(deviation(got.losses, expected.losses), allowed) << "losses";
  ASSERT_EQ(got.parameters.size(), expected.parameters.size());
  for (std::size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_LE(deviation(got.parameters[i], expected.parameters[i]), allowed) << "parameter " << i;
}

}  // namespace meshard
