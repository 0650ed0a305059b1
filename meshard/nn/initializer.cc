#include "meshard/nn/initializer.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/ops/all.h"

namespace meshard::nn::init {
namespace {

// A normal number truncated to -2..2: the inverse of the normal distribution function, of a uniform
// number between its values at the bounds, erf(-2 / sqrt(2)) to erf(2 / sqrt(2)).
Tensor cut_normal(const Tensor& key, const Shape& shape, DType dtype) {
  double end = std::erf(std::numbers::sqrt2);
  Tensor x = random::uniform(key, shape, DType::f32, -end, end);
  return astype(clip(erf_inv(x) * std::numbers::sqrt2, -2, 2), dtype);
}

// Uniform with the given variance. A uniform number in [-1, 1) has the variance 1/3.
Initializer uniform_of(double (*variance)(const Fans&)) {
  return [variance](const Tensor& key, const Shape& shape, const Fans& fans, DType dtype) {
    double limit = std::sqrt(3 * variance(fans));
    return random::uniform(key, shape, dtype, -limit, limit);
  };
}

Initializer normal_of(double (*variance)(const Fans&)) {
  return [variance](const Tensor& key, const Shape& shape, const Fans& fans, DType dtype) {
    return random::normal(key, shape, dtype) * std::sqrt(variance(fans));
  };
}

double glorot(const Fans& fans) { return 2.0 / static_cast<double>(fans.in + fans.out); }
double he(const Fans& fans) { return 2.0 / static_cast<double>(fans.in); }
double lecun(const Fans& fans) { return 1.0 / static_cast<double>(fans.in); }

}  // namespace

Initializer constant(double value) {
  return [value](const Tensor&, const Shape& shape, const Fans&, DType dtype) {
    return full(shape, value, dtype);
  };
}

Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }

Initializer normal(double deviation) {
  return [deviation](const Tensor& key, const Shape& shape, const Fans&, DType dtype) {
    return random::normal(key, shape, dtype) * deviation;
  };
}

Initializer uniform(double limit) {
  return [limit](const Tensor& key, const Shape& shape, const Fans&, DType dtype) {
    return random::uniform(key, shape, dtype, -limit, limit);
  };
}

Initializer truncated_normal(double deviation) {
  return [deviation](const Tensor& key, const Shape& shape, const Fans&, DType dtype) {
    return cut_normal(key, shape, dtype) * deviation;
  };
}

Initializer glorot_uniform() { return uniform_of(glorot); }
Initializer glorot_normal() { return normal_of(glorot); }
Initializer he_uniform() { return uniform_of(he); }
Initializer he_normal() { return normal_of(he); }
Initializer lecun_uniform() { return uniform_of(lecun); }
Initializer lecun_normal() { return normal_of(lecun); }

Initializer orthogonal(double scale, std::int64_t column_dimension) {
  return [scale, column_dimension](const Tensor& key, const Shape& shape, const Fans&,
                                   DType dtype) {
    std::int64_t at = column_dimension < 0 ? column_dimension + shape.rank() : column_dimension;
    if (shape.rank() < 2 || at < 0 || at >= shape.rank())
      throw Error(ErrorCode::kInvalidArgument, cat("[init.orthogonal] a parameter of shape ", shape,
                                                   " must have rank 2 or more, and a dimension ",
                                                   column_dimension, " for columns"));
    if (shape.size() == 0) return meshard::zeros(shape, dtype);
    std::int64_t columns = shape[static_cast<int>(at)];
    Tensor matrix = random::orthogonal(key, shape.size() / columns, {}, dtype, columns);
    Dimensions sizes = shape.sizes();
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    sizes.push_back(columns);
    return moveaxis(reshape(matrix, Shape(sizes)), -1, at) * scale;
  };
}

}  // namespace meshard::nn::init
