// Layers computed from their definitions by plain loops.
#pragma once
#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/structure.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"

namespace meshard::nn {

/// f32 numbers of both signs, with a period of 101.
inline Tensor varied(Shape shape, double scale = 1, int from = 0) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(
        scale *
        (static_cast<double>((i * 7919 + static_cast<std::size_t>(from) * 31) % 101) / 50 - 1));
  return from_host(std::move(numbers), std::move(shape));
}

/// The elements of a tensor as numbers: x({i, j}).
class Numbers {
 public:
  explicit Numbers(const Tensor& tensor)
      : shape_(tensor.shape()), data_(astype(tensor, DType::f32).to_vector<float>()) {}
  double operator()(std::initializer_list<std::int64_t> place) const {
    std::int64_t offset = 0;
    int d = 0;
    for (std::int64_t i : place) offset = offset * shape_[d++] + i;
    return data_[static_cast<std::size_t>(offset)];
  }
  const std::vector<float>& all() const { return data_; }

 private:
  Shape shape_;
  std::vector<float> data_;
};

/// Expects each element of `actual` to be within `tolerance` of `expected`.
inline void expect_near(const Tensor& actual, const std::vector<double>& expected,
                        double tolerance = 2e-6) {
  EXPECT_THAT(Numbers(actual).all(),
              testing::Pointwise(testing::FloatNear(static_cast<float>(tolerance)),
                                 std::vector<float>(expected.begin(), expected.end())));
}
inline void expect_same(const Tensor& actual, const Tensor& expected, double tolerance = 2e-6) {
  EXPECT_EQ(actual.shape(), expected.shape());
  EXPECT_THAT(Numbers(actual).all(),
              testing::Pointwise(testing::FloatNear(static_cast<float>(tolerance)),
                                 Numbers(expected).all()));
}

/// The same structure, with each tensor sharded as in `other`.
template <class T>
T placed_as(const T& value, const T& other) {
  std::vector<Tensor> tensors = structure::tensors(value), places = structure::tensors(other);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = mark_sharding(tensors[i], *places[i].sharding());
  return structure::with_tensors(value, tensors);
}

}  // namespace meshard::nn
