#include "meshard/ops/composite/random_distributions.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "meshard/graph/record.h"
#include "meshard/ops/abs.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/composite/random.h"
#include "meshard/ops/composite/random_uniform.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/erf.h"
#include "meshard/ops/erf_inv.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/log.h"
#include "meshard/ops/log1p.h"
#include "meshard/ops/maximum.h"
#include "meshard/ops/minimum.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/optimization_barrier.h"
#include "meshard/ops/pow.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/sign.h"
#include "meshard/ops/sqrt.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/tan.h"

namespace meshard::random {
namespace {

// The number of `dtype` next to `value`, above it or below it.
double neighbour(DType dtype, double value, bool above) {
  HostArray scalar = HostArray::full(TensorType{dtype, Shape{}}, value);
  return visit_dtype(dtype, [&]<class T>() -> double {
    if constexpr (sizeof(T) == 1 || std::is_integral_v<T> || is_complex(dtype_of<T>())) {
      return value;  // not a dtype of these functions
    } else {
      using Bits =
          std::conditional_t<sizeof(T) == 2, std::uint16_t,
                             std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
      constexpr Bits kSign = Bits(Bits{1} << (8 * sizeof(T) - 1));
      Bits bits_of = std::bit_cast<Bits>(scalar.item<T>());
      if ((bits_of & ~kSign) == 0)
        bits_of = Bits(above ? 1 : kSign + 1);
      else
        bits_of = Bits(bits_of + (((bits_of & kSign) == 0) == above ? 1 : -1));
      return HostArray::scalar(std::bit_cast<T>(bits_of)).template item<double>();
    }
  });
}

// A parameter of a distribution in its dtype.
Tensor parameter(const In& x, DType dtype) {
  return x.tensor ? astype(x, dtype) : element_wise::to_tensor(x, dtype);
}

}  // namespace

Tensor truncated_normal(In key, double low, double high, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("truncated_normal", dtype, key.where);
  Tensor sqrt2 = float_constant(dtype, std::numbers::sqrt2);
  // Computed where the numbers are, not while compiling, which rounds otherwise.
  auto probability = [&](double bound) {
    return erf(divide(optimization_barrier(float_constant(dtype, bound)), sqrt2));
  };
  Tensor even = uniform_between(key, shape, dtype, probability(low), probability(high));
  Tensor open_low = float_constant(dtype, neighbour(dtype, low, true));
  Tensor open_high = float_constant(dtype, neighbour(dtype, high, false));
  return minimum(maximum(multiply(sqrt2, erf_inv(even)), open_low), open_high);
}

Tensor exponential(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("exponential", dtype, key.where);
  // 1 - u is in (0, 1], where the logarithm is finite.
  return negative(log1p(negative(uniform_between(key, shape, dtype, 0, 1))));
}

Tensor gumbel(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("gumbel", dtype, key.where);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).smallest_normal, 1);
  return negative(log(negative(log(even))));
}

Tensor laplace(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("laplace", dtype, key.where);
  Tensor even = uniform_between(key, shape, dtype, -1 + float_limits(dtype).epsilon / 2, 1);
  return multiply(sign(even), log1p(negative(abs(even))));
}

Tensor cauchy(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("cauchy", dtype, key.where);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).epsilon, 1);
  return tan(multiply(float_constant(dtype, std::numbers::pi),
                      subtract(even, float_constant(dtype, 0.5))));
}

Tensor logistic(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("logistic", dtype, key.where);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).smallest_normal, 1);
  return subtract(log(even), log1p(negative(even)));
}

Tensor lognormal(In key, In sigma, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("lognormal", dtype, key.where);
  return exp(multiply(normal(key, std::move(shape), dtype), parameter(sigma, dtype)));
}

Tensor pareto(In key, In b, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("pareto", dtype, key.where);
  return exp(divide(exponential(key, std::move(shape), dtype), parameter(b, dtype)));
}

Tensor rayleigh(In key, In scale, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("rayleigh", dtype, key.where);
  Tensor even = uniform_between(key, shape, dtype, 0, 1);
  return multiply(parameter(scale, dtype), sqrt(multiply(log(even), -2)));
}

Tensor weibull_min(In key, In scale, In concentration, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("weibull_min", dtype, key.where);
  Tensor power = divide(float_constant(dtype, 1), parameter(concentration, dtype));
  return multiply(pow(exponential(key, std::move(shape), dtype), power), parameter(scale, dtype));
}

Tensor maxwell(In key, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_float("maxwell", dtype, key.where);
  Dimensions three = shape.sizes();
  three.push_back(3);
  Tensor at = normal(key, Shape(three), dtype);
  return sqrt(sum(multiply(at, at), static_cast<std::int64_t>(three.size()) - 1));
}

}  // namespace meshard::random
