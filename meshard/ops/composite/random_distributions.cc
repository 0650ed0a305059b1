#include "meshard/ops/composite/random_distributions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/random_uniform.h"
#include "meshard/ops/definition/element_wise.h"

namespace meshard::random {
using namespace internal;
namespace {

// The next number of `dtype` above or below `value`.
double neighbor(DType dtype, double value, bool above) {
  HostArray scalar = HostArray::full(TensorType{dtype, Shape{}}, value);
  return visit_dtype(dtype, [&]<class T>() -> double {
    if constexpr (sizeof(T) == 1 || std::is_integral_v<T> || is_complex(dtype_of<T>())) {
      return value;  // other dtypes are rejected before
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

// A distribution's parameter in its dtype.
Tensor parameter(const In& x, DType dtype) {
  return x.tensor ? astype(x, dtype) : element_wise::to_tensor(x, dtype);
}

}  // namespace

Tensor truncated_normal(In key, double low, double high, Shape shape, DType dtype) {
  FloatDraw draw("truncated_normal", key, dtype);
  Tensor sqrt2 = float_constant(dtype, std::numbers::sqrt2);
  // The barrier prevents constant folding, which rounds differently from the device.
  auto probability = [&](double bound) {
    return erf(divide(optimization_barrier(float_constant(dtype, bound)), sqrt2));
  };
  Tensor even = uniform_between(key, shape, dtype, probability(low), probability(high));
  Tensor open_low = float_constant(dtype, neighbor(dtype, low, true));
  Tensor open_high = float_constant(dtype, neighbor(dtype, high, false));
  return minimum(maximum(multiply(sqrt2, erf_inv(even)), open_low), open_high);
}

Tensor exponential(In key, Shape shape, DType dtype) {
  FloatDraw draw("exponential", key, dtype);
  // 1 - u is in (0, 1], where the logarithm is finite.
  return negative(log1p(negative(uniform_between(key, shape, dtype, 0, 1))));
}

Tensor gumbel(In key, Shape shape, DType dtype) {
  FloatDraw draw("gumbel", key, dtype);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).smallest_normal, 1);
  return negative(log(negative(log(even))));
}

Tensor laplace(In key, Shape shape, DType dtype) {
  FloatDraw draw("laplace", key, dtype);
  Tensor even = uniform_between(key, shape, dtype, -1 + float_limits(dtype).epsilon / 2, 1);
  return multiply(sign(even), log1p(negative(abs(even))));
}

Tensor cauchy(In key, Shape shape, DType dtype) {
  FloatDraw draw("cauchy", key, dtype);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).epsilon, 1);
  return tan(multiply(float_constant(dtype, std::numbers::pi),
                      subtract(even, float_constant(dtype, 0.5))));
}

Tensor logistic(In key, Shape shape, DType dtype) {
  FloatDraw draw("logistic", key, dtype);
  Tensor even = uniform_between(key, shape, dtype, float_limits(dtype).smallest_normal, 1);
  return subtract(log(even), log1p(negative(even)));
}

Tensor lognormal(In key, In sigma, Shape shape, DType dtype) {
  FloatDraw draw("lognormal", key, dtype);
  return exp(multiply(normal(key, std::move(shape), dtype), parameter(sigma, dtype)));
}

Tensor pareto(In key, In b, Shape shape, DType dtype) {
  FloatDraw draw("pareto", key, dtype);
  return exp(divide(exponential(key, std::move(shape), dtype), parameter(b, dtype)));
}

Tensor rayleigh(In key, In scale, Shape shape, DType dtype) {
  FloatDraw draw("rayleigh", key, dtype);
  Tensor even = uniform_between(key, shape, dtype, 0, 1);
  return multiply(parameter(scale, dtype), sqrt(multiply(log(even), -2)));
}

Tensor weibull_min(In key, In scale, In concentration, Shape shape, DType dtype) {
  FloatDraw draw("weibull_min", key, dtype);
  Tensor power = divide(float_constant(dtype, 1), parameter(concentration, dtype));
  return multiply(pow(exponential(key, std::move(shape), dtype), power), parameter(scale, dtype));
}

Tensor maxwell(In key, Shape shape, DType dtype) {
  FloatDraw draw("maxwell", key, dtype);
  Dimensions three = shape.sizes();
  three.push_back(3);
  Tensor at = normal(key, Shape(three), dtype);
  return sqrt(sum(multiply(at, at), static_cast<std::int64_t>(three.size()) - 1));
}

Tensor triangular(In key, In left, In mode, In right, Shape shape, DType dtype) {
  FloatDraw draw("triangular", key, dtype);
  Tensor low = parameter(left, dtype), high = parameter(right, dtype);
  Tensor top = parameter(mode, dtype), even = uniform(key, shape, dtype);
  Tensor rising = low + sqrt(even * (high - low) * (top - low));
  Tensor falling = high - sqrt((1 - even) * (high - low) * (high - top));
  return where(even < (top - low) / (high - low), rising, falling);
}

Tensor wald(In key, In mean, Shape shape, DType dtype) {
  FloatDraw draw("wald", key, dtype);
  std::vector<Tensor> keys = split(key);
  Tensor mu = broadcast_to(parameter(mean, dtype), shape), v = normal(keys[0], shape, dtype);
  Tensor even = uniform(keys[1], shape, dtype);
  Tensor y = v * v, squared = mu * mu;
  Tensor root = sqrt(4 * mu * y + squared * (y * y));
  Tensor x = mu + squared * y / 2 - mu / 2 * root;
  return where(even <= mu / (mu + x), x, squared / x);
}

Tensor orthogonal(In key, std::int64_t rows, Shape shape, DType dtype,
                  std::optional<std::int64_t> columns) {
  FloatDraw draw("orthogonal", key, dtype);
  std::int64_t wide = columns.value_or(rows);
  if (rows < 1 || wide < 1)
    throw_invalid(effective_source(key.where), "[random.orthogonal] cannot make matrices of ", rows,
                  " rows and ", wide, " columns");
  Dimensions sizes = shape.sizes();
  sizes.push_back(std::max(rows, wide));
  sizes.push_back(std::min(rows, wide));
  Qr factors = qr(normal(key, Shape(sizes), dtype));
  Tensor signs = expand_dims(sign(diagonal(factors.r)), shape.rank());
  Tensor tall = astype(factors.q * signs, dtype);
  return rows < wide ? matrix_transpose(tall) : tall;
}

Tensor multivariate_normal(In key, In mean, In covariance, Shape shape, DType dtype) {
  FloatDraw draw("multivariate_normal", key, dtype);
  Tensor mu = parameter(mean, dtype), spread = parameter(covariance, dtype);
  if (mu.rank() < 1 || spread.rank() < 2 || spread.dim(-1) != mu.dim(-1) ||
      spread.dim(-2) != mu.dim(-1))
    throw_invalid(effective_source(key.where), "[random.multivariate_normal] a mean ", mu.type(),
                  " and a covariance ", spread.type(), " do not match");
  Dimensions sizes = shape.sizes();
  sizes.push_back(mu.dim(-1));
  sizes.push_back(1);
  Tensor turned = matmul(cholesky(spread), normal(key, Shape(sizes), dtype));
  return mu + reshape(turned, Shape(Dimensions(sizes.begin(), sizes.end() - 1)));
}

namespace {

// Draws gammas by rejection: normal and uniform numbers from separate keys for each element, until
// every element is accepted.
class GammaDraw {
 public:
  GammaDraw(std::string_view place, const In& key, const In& a, const Shape& shape, DType dtype)
      : shape_(shape), dtype_(dtype), a_(broadcast_to(parameter(a, dtype), shape)) {
    // For a < 1 it draws a gamma of a + 1 and multiplies it by a power of a uniform number.
    large_ = a_ >= 1;
    d_ = where(large_, a_, a_ + 1) - number(1.0 / 3);
    c_ = number(1.0 / 3) / sqrt(d_);
    std::vector<Words> keys = split_each(words_at(place, key, shape), 2);
    boost_key_ = keys[1];
    v_ = accepted(keys[0]);
  }

  Tensor value() const {
    Tensor even = 1 - uniform_each(boost_key_, dtype_);
    return d_ * v_ * where(large_, 1, pow(even, number(1) / a_));
  }

  Tensor logarithm() const {
    Tensor even = log1p(negative(uniform_each(boost_key_, dtype_)));
    Tensor boost = where(large_ | equal(even, 0), 0, even * (number(1) / a_));
    return log(d_) + log(v_) + boost;
  }

 private:
  Tensor number(double value) const { return float_constant(dtype_, value); }
  Tensor everywhere(double value) const { return broadcast_to(number(value), shape_); }

  // Draws normal numbers x until all 1 + c x are positive; returns 1 + c x and x.
  std::pair<Tensor, Tensor> positive(const Words& keys) const {
    using State = std::tuple<Words, Tensor, Tensor>;
    auto none = [](const State& state) { return any(std::get<2>(state) <= 0); };
    auto again = [this](const State& state) {
      const auto& [old, x, v] = state;
      std::vector<Words> next = split_each(old, 2);
      Tensor drawn = normal_each(next[1], dtype_);
      Tensor open = v <= 0;
      return State(next[0], where(open, drawn, x), where(open, 1 + drawn * c_, v));
    };
    State last = while_loop(none, again, State(keys, everywhere(0), everywhere(-1)));
    return {std::get<2>(last), std::get<1>(last)};
  }

  // The cubes of the accepted numbers.
  Tensor accepted(const Words& keys) const {
    using State = std::tuple<Words, Tensor, Tensor>;
    auto waiting = [](const State& state) { return any(std::get<2>(state)); };
    auto again = [this](const State& state) {
      const auto& [old, cubes, open] = state;
      std::vector<Words> next = split_each(old, 3);
      auto [v, x] = positive(next[1]);
      Tensor square = x * x, cube = v * v * v, even = uniform_each(next[2], dtype_);
      Tensor refused = (even >= 1 - number(0.0331) * (square * square)) &
                       (log(even) >= square * number(0.5) + d_ * (1 - cube + log(cube)));
      return State(next[0], where(open, cube, cubes), open & refused);
    };
    Tensor all = broadcast_to(constant(HostArray::scalar(true)), shape_);
    return std::get<1>(while_loop(waiting, again, State(keys, everywhere(1), all)));
  }

  Shape shape_;
  DType dtype_;
  Tensor a_, large_, d_, c_, v_;
  Words boost_key_;
};

// Knuth's algorithm: multiplies uniform numbers until the product is below exp(-rate).
Tensor knuth_poisson(const Tensor& key, const Tensor& rate, DType dtype) {
  using State = std::tuple<Tensor, Tensor, Tensor>;
  Tensor bound = negative(rate);
  auto waiting = [&](const State& state) { return any(std::get<2>(state) > bound); };
  auto again = [&](const State& state) {
    const auto& [old, count, log_product] = state;
    std::vector<Tensor> keys = split(old);
    Tensor next = where(log_product > bound, count + 1, count);
    return State(keys[0], next, log_product + log(uniform(keys[1], rate.shape())));
  };
  State last = while_loop(waiting, again, State(key, zeros(rate.shape(), dtype), zeros_like(rate)));
  return std::get<1>(last) - 1;
}

// Hörmann's algorithm PTRS.
Tensor rejection_poisson(const Tensor& key, const Tensor& rate) {
  using State = std::tuple<Tensor, Tensor, Tensor>;
  auto number = [](double value) { return float_constant(DType::f32, value); };
  Tensor log_rate = log(rate), b = number(0.931) + number(2.53) * sqrt(rate);
  Tensor a = number(-0.059) + number(0.02483) * b;
  Tensor inverse_alpha = number(1.1239) + number(1.1328) / (b - number(3.4));
  Tensor sure = number(0.9277) - number(3.6224) / (b - 2);
  auto waiting = [](const State& state) { return any(std::get<2>(state)); };
  auto again = [&](const State& state) {
    const auto& [old, counts, open] = state;
    std::vector<Tensor> keys = random::split(old, 3);
    Tensor u = uniform(keys[1], rate.shape()) - number(0.5), v = uniform(keys[2], rate.shape());
    Tensor shifted = number(0.5) - abs(u);
    Tensor k = floor((2 * a / shifted + b) * u + rate + number(0.43));
    Tensor s = log(v * inverse_alpha / (a / (shifted * shifted) + b));
    Tensor t = negative(rate) + k * log_rate - lgamma(k + 1);
    Tensor at_once = (shifted >= number(0.07)) & (v <= sure);
    Tensor refused = (k < 0) | ((shifted < number(0.013)) & (v > shifted));
    Tensor accepted = at_once | (~refused & (s <= t));
    return State(keys[0], where(accepted, k, counts), open & ~accepted);
  };
  Tensor all = broadcast_to(constant(HostArray::scalar(true)), rate.shape());
  return std::get<1>(while_loop(waiting, again, State(key, full_like(rate, -1), all)));
}

}  // namespace

Tensor gamma(In key, In a, Shape shape, DType dtype) {
  FloatDraw draw("gamma", key, dtype);
  return GammaDraw("gamma", key, a, shape, dtype).value();
}

Tensor loggamma(In key, In a, Shape shape, DType dtype) {
  FloatDraw draw("loggamma", key, dtype);
  return GammaDraw("loggamma", key, a, shape, dtype).logarithm();
}

Tensor beta(In key, In a, In b, Shape shape, DType dtype) {
  FloatDraw draw("beta", key, dtype);
  std::vector<Tensor> keys = split(key);
  Tensor log_a = loggamma(keys[0], a, shape, dtype), log_b = loggamma(keys[1], b, shape, dtype);
  // a / (a + b), without losing precision for small numbers.
  Tensor larger = maximum(log_a, log_b);
  Tensor of_a = exp(log_a - larger), of_b = exp(log_b - larger);
  return of_a / (of_a + of_b);
}

Tensor dirichlet(In key, In alpha, Shape shape, DType dtype) {
  FloatDraw draw("dirichlet", key, dtype);
  Tensor concentrations = parameter(alpha, dtype);
  if (concentrations.rank() == 0)
    throw_invalid(effective_source(key.where), "[random.dirichlet] alpha must be a vector, not ",
                  concentrations.type());
  Dimensions sizes = shape.sizes();
  sizes.push_back(concentrations.dim(-1));
  return softmax(loggamma(key, concentrations, Shape(sizes), dtype), -1);
}

Tensor chisquare(In key, In df, Shape shape, DType dtype) {
  FloatDraw draw("chisquare", key, dtype);
  return exp(loggamma(key, parameter(df, dtype) / 2, std::move(shape), dtype)) * 2;
}

Tensor student_t(In key, In df, Shape shape, DType dtype) {
  FloatDraw draw("student_t", key, dtype);
  std::vector<Tensor> keys = split(key);
  Tensor half = parameter(df, dtype) / 2;
  return normal(keys[0], shape, dtype) * sqrt(half / gamma(keys[1], half, shape, dtype));
}

Tensor fisher_f(In key, In numerator, In denominator, Shape shape, DType dtype) {
  FloatDraw draw("fisher_f", key, dtype);
  std::vector<Tensor> keys = split(key);
  Tensor above = parameter(numerator, dtype), below = parameter(denominator, dtype);
  return chisquare(keys[1], above, shape, dtype) / above /
         (chisquare(keys[0], below, shape, dtype) / below);
}

Tensor generalized_normal(In key, double p, Shape shape, DType dtype) {
  FloatDraw draw("generalized_normal", key, dtype);
  std::vector<Tensor> keys = split(key);
  Tensor size =
      pow(gamma(keys[0], float_constant(dtype, 1 / p), shape, dtype), float_constant(dtype, 1 / p));
  return rademacher(keys[1], shape, dtype) * size;
}

Tensor ball(In key, std::int64_t d, double p, Shape shape, DType dtype) {
  FloatDraw draw("ball", key, dtype);
  std::vector<Tensor> keys = split(key);
  Dimensions sizes = shape.sizes();
  sizes.push_back(d);
  Tensor at = generalized_normal(keys[0], p, Shape(sizes), dtype);
  Tensor powers = sum(pow(abs(at), float_constant(dtype, p)), -1);
  Tensor length = pow(powers + exponential(keys[1], shape, dtype), float_constant(dtype, 1 / p));
  return at / expand_dims(length, -1);
}

Tensor poisson(In key, In rate, Shape shape, DType dtype) {
  SourceScope line(key.where);
  check_key("poisson", key);
  if (!is_integer(dtype))
    throw_invalid(effective_source(key.where), "[random.poisson] takes an integer dtype, not ",
                  dtype);
  Tensor rates = stop_gradient(broadcast_to(parameter(rate, DType::f32), shape));
  Tensor small = isnan(rates) | (rates < 10);
  Tensor few = knuth_poisson(*key.tensor, where(small, rates, 0), dtype);
  Tensor many =
      rejection_poisson(*key.tensor, where(small, float_constant(DType::f32, 1e5), rates));
  return where(equal(rates, 0), 0, where(small, few, astype(many, dtype)));
}

}  // namespace meshard::random
