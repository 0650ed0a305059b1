// tests/conformance and meshard-conformance compare the values with JAX's; these tests check what
// follows from the formulas.
#include "meshard/ops/composite/random_distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/random.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

std::vector<double> drawn_values(const Tensor& tensor) {
  return interpret(tensor).astype(DType::f64).to_vector<double>();
}

double share_below(const std::vector<double>& values, double bound) {
  auto below = [&](double value) { return value < bound; };
  return static_cast<double>(std::count_if(values.begin(), values.end(), below)) /
         static_cast<double>(values.size());
}

// The fraction of draws below a bound is the distribution function there. The standard deviation of
// the fraction, for 4,000 draws, is at most 0.008.
TEST(RandomDistributions, FollowTheirDistributionFunctions) {
  constexpr double kPi = 3.14159265358979, kFarOff = 0.035;
  Shape shape{4000};
  Tensor key = random::key(5);
  struct Case {
    const char* name;
    Tensor draws;
    double (*function)(double);
  };
  const Case cases[] = {
      {"exponential", random::exponential(key, shape), [](double x) { return 1 - std::exp(-x); }},
      {"gumbel", random::gumbel(key, shape), [](double x) { return std::exp(-std::exp(-x)); }},
      {"laplace", random::laplace(key, shape), [](double x) { return 1 - std::exp(-x) / 2; }},
      {"cauchy", random::cauchy(key, shape), [](double x) { return 0.5 + std::atan(x) / kPi; }},
      {"logistic", random::logistic(key, shape), [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"lognormal", random::lognormal(key, 2, shape),
       [](double x) { return 0.5 + std::erf(std::log(x) / 2 / std::sqrt(2)) / 2; }},
      {"pareto", random::pareto(key, 3, shape),
       [](double x) { return x < 1 ? 0 : 1 - std::pow(x, -3); }},
      {"rayleigh", random::rayleigh(key, 2, shape),
       [](double x) { return 1 - std::exp(-x * x / 8); }},
      {"weibull_min", random::weibull_min(key, 2, 3, shape),
       [](double x) { return 1 - std::exp(-std::pow(x / 2, 3)); }},
      {"maxwell", random::maxwell(key, shape),
       [](double x) {
         return std::erf(x / std::sqrt(2)) - std::sqrt(2 / kPi) * x * std::exp(-x * x / 2);
       }},
      {"truncated_normal", random::truncated_normal(key, -1, 2, shape),
       [](double x) {
         auto normal = [](double at) { return 0.5 + std::erf(at / std::sqrt(2)) / 2; };
         return (normal(std::min(x, 2.0)) - normal(-1)) / (normal(2) - normal(-1));
       }},
  };
  for (const Case& each : cases) {
    std::vector<double> values = drawn_values(each.draws);
    for (double bound : {0.3, 0.9, 1.6, 3.0})
      EXPECT_NEAR(share_below(values, bound), each.function(bound), kFarOff)
          << each.name << " below " << bound;
  }
}

TEST(RandomDistributions, TruncatedStaysInsideItsBounds) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (double value :
         drawn_values(random::truncated_normal(random::key(1), -0.25, 0.25, {500}, dtype))) {
      EXPECT_GT(value, -0.25) << to_string(dtype);
      EXPECT_LT(value, 0.25) << to_string(dtype);
    }
}

TEST(RandomDistributions, AreFiniteInEveryDtype) {
  using Draw = Tensor (*)(In, Shape, DType);
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (Draw draw : {random::exponential, random::gumbel, random::laplace, random::logistic}) {
      Tensor out = draw(random::key(2), Shape{3, 100}, dtype);
      EXPECT_EQ(out.type(), (TensorType{dtype, {3, 100}}));
      for (double value : drawn_values(out)) EXPECT_TRUE(std::isfinite(value)) << to_string(dtype);
    }
}

TEST(RandomDistributions, RefuseOtherDtypes) {
  Tensor key = random::key(1);
  EXPECT_TRUE(throws_error([&] { random::gumbel(key, {2}, DType::i32); },
                           ErrorCode::kInvalidArgument,
                           {"random_distributions_test.cc", "[random.gumbel] takes f16", "i32"}));
  EXPECT_TRUE(throws_error([&] { random::truncated_normal(key, 0, 1, {2}, DType::f8e5m2); },
                           ErrorCode::kInvalidArgument, {"[random.truncated_normal]", "f8e5m2"}));
  EXPECT_TRUE(throws_error([&] { random::cauchy(3, {2}); }, ErrorCode::kInvalidArgument,
                           {"a key must be u32[2]"}));
}

}  // namespace
}  // namespace meshard
