#include "meshard/nn/variance_scaling.h"

#include <cmath>
#include <numbers>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::nn::init {
namespace {

// The standard deviation of a standard normal that is truncated at -2 and 2: sqrt(1 - 4 phi(2) / (2
// Phi(2) - 1)), with the density phi and the distribution function Phi.
constexpr double kDeviationWithinTwo = 0.87962566103423978;

double number_of(Fan fan, const Fans& fans) {
  auto in = static_cast<double>(fans.in), out = static_cast<double>(fans.out);
  switch (fan) {
    case Fan::kIn: return in;
    case Fan::kOut: return out;
    case Fan::kAverage: return (in + out) / 2;
    case Fan::kGeometricMean: break;
  }
  return std::sqrt(in * out);
}

// The inverse of the normal distribution function, of a uniform number between its values at the
// bounds.
Tensor normal_between(double low, double high, const Tensor& key, const Shape& shape, DType dtype) {
  DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor x = random::uniform(key, shape, wide, std::erf(low / std::numbers::sqrt2),
                             std::erf(high / std::numbers::sqrt2));
  return astype(clip(erf_inv(x) * std::numbers::sqrt2, low, high), dtype);
}

}  // namespace

Initializer variance_scaling(double scale, Fan fan, Distribution distribution,
                             SourceLocation where) {
  if (!(scale > 0))
    throw_invalid(effective_source(where), "[init.variance_scaling] scale = ", scale,
                  " must be positive");
  return [=](const Tensor& key, const Shape& shape, const Fans& fans, DType dtype) {
    double variance = scale / number_of(fan, fans);
    switch (distribution) {
      case Distribution::kTruncatedNormal:
        return normal_between(-2, 2, key, shape, dtype) *
               (std::sqrt(variance) / kDeviationWithinTwo);
      case Distribution::kNormal: return random::normal(key, shape, dtype) * std::sqrt(variance);
      case Distribution::kUniform: break;
    }
    double limit = std::sqrt(3 * variance);
    return random::uniform(key, shape, dtype, -limit, limit);
  };
}

Initializer truncated_normal(double deviation, double low, double high, SourceLocation where) {
  if (!(low < high))
    throw_invalid(effective_source(where), "[init.truncated_normal] low = ", low,
                  " must be below high = ", high);
  return [=](const Tensor& key, const Shape& shape, const Fans&, DType dtype) {
    return normal_between(low, high, key, shape, dtype) * deviation;
  };
}

Initializer delta_orthogonal(double scale) {
  return [scale](const Tensor& key, const Shape& shape, const Fans&, DType dtype) {
    int rank = shape.rank();
    if (rank < 3 || rank > 5 || shape[rank - 2] > shape[rank - 1])
      throw Error(ErrorCode::kInvalidArgument,
                  cat("[init.delta_orthogonal] a kernel of shape ", shape,
                      " must be [window..., in, out] with 1 to 3 sizes of the window and not more "
                      "inputs than outputs"));
    std::int64_t in = shape[rank - 2], out = shape[rank - 1];
    Tensor matrix = random::orthogonal(key, in, {}, dtype, out) * scale;
    Dimensions middle = shape.sizes(), before(static_cast<std::size_t>(rank), 0), after = before;
    for (int d = 0; d < rank - 2; ++d) {
      auto at = static_cast<std::size_t>(d);
      before[at] = (shape[d] - 1) / 2;
      after[at] = shape[d] - 1 - before[at];
      middle[at] = 1;
    }
    return pad(reshape(matrix, Shape(std::move(middle))), 0, std::move(before), std::move(after));
  };
}

}  // namespace meshard::nn::init
