// Compares random numbers that are computed on the plugin with JAX's. The bits must not depend on
// the sharding.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "meshard/meshard.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/jax_cases.h"

namespace meshard::conformance {
namespace {

using JaxRandom = OnDevices;

Shape shape_of(const Json& params) {
  return Shape(params.at("shape").get<std::vector<std::int64_t>>());
}

// Computes the case from a key (for blocks: key and counter). Undefined if the case is not
// supported.
Tensor compute(const Json& test, const Tensor& key, const std::string& what) {
  const Json& params = test.at("params");
  if (what.starts_with("threefry2x32 block")) {
    auto word = [&](std::size_t i) {
      return constant(HostArray::scalar(params.at("counter")[i].get<std::uint32_t>()));
    };
    auto [first, second] = random::threefry(key, word(0), word(1));
    return stack({first, second});
  }
  if (what == "key data of a seed") return key;
  if (what == "split") return stack(random::split(key, params.at("num").get<std::int64_t>()));
  if (what == "fold_in") return random::fold_in(key, params.at("data").get<int>());
  if (what == "32-bit words") return random::bits(key, shape_of(params));
  if (what == "narrow words")
    return random::bits(key, shape_of(params), dtype_of_json(params.at("dtype")));
  if (what.starts_with("uniform"))
    return random::uniform(key, shape_of(params), dtype_of_json(params.value("dtype", "float32")),
                           params.value("minval", 0.0), params.value("maxval", 1.0));
  if (what == "standard normal float32") return random::normal(key, shape_of(params));
  if (what.starts_with("bernoulli"))
    return random::bernoulli(key, params.at("p").get<double>(), shape_of(params));
  if (what.starts_with("truncated normal"))
    return random::truncated_normal(key, params.at("lower"), params.at("upper"), shape_of(params));
  if (what == "gumbel") return random::gumbel(key, shape_of(params));
  if (what == "exponential") return random::exponential(key, shape_of(params));
  if (what.starts_with("integers"))
    return random::randint(key, shape_of(params), params.at("minval"), params.at("maxval"));
  if (what.starts_with("permutation"))
    return random::permutation(key, params.at("n").get<std::int64_t>());
  if (what.starts_with("categorical")) {
    HostArray logits = HostArray::from_vector(params.at("logits").get<std::vector<float>>());
    return random::categorical(key, constant(std::move(logits)), -1, shape_of(params));
  }
  return {};
}

HostArray key_of(const Json& test) {
  const Json& params = test.at("params");
  if (params.contains("key"))
    return HostArray::from_vector(params.at("key").get<std::vector<std::uint32_t>>());
  return random::key(params.at("seed").get<std::int64_t>()).to_host();
}

// Allowed rounding errors of the last operations. Integers, bools and plain uniforms must be exact.
double allowed_ulps(const Json& test, const std::string& what) {
  if (what == "standard normal float32" || what.starts_with("truncated normal")) return 4;
  if (what == "gumbel" || what == "exponential") return 4;
  return test.at("params").contains("minval") ? 1 : 0;
}

TEST_F(JaxRandom, IsMetOnOneDeviceAndOnEight) {
  Json golden = read_golden("random.json");
  Mesh mesh({{"x", 8}});
  int compared = 0;
  for (const Json& test : golden.at("cases")) {
    const std::string id = test.at("id"), what = test.at("what");
    SCOPED_TRACE(cat(id, ": ", what));
    std::vector<HostArray> key{key_of(test)};
    Body body = [&](std::span<const Tensor> x) {
      return std::vector<Tensor>{compute(test, x[0], what)};
    };
    HostArray one = run(*compile(trace(key, body)), key)[0];
    EXPECT_TRUE(close(one, array_of_json(test.at("outputs")[0]), allowed_ulps(test, what)));
    ++compared;
    if (one.rank() == 0) continue;
    // Splits the first dimension over 8 devices, in most cases unevenly.
    Sharding rows(mesh, P("x"), static_cast<std::size_t>(one.rank()));
    Body sharded = [&](std::span<const Tensor> x) {
      return std::vector<Tensor>{sharding_constraint(compute(test, x[0], what), rows)};
    };
    HostArray eight = run(*compile(trace(key, sharded)), key)[0];
    EXPECT_TRUE(eight.same_bits(one)) << eight.to_string() << "\ninstead of\n" << one.to_string();
    tally("random arrays with the same bits on 8 devices");
  }
  tally("cases of random.json compared", compared);
  EXPECT_GE(compared, 60);
}

struct Draw {
  const char* name;
  std::function<Tensor(const Tensor& key)> draw;
  std::vector<double> of_jax;  // JAX 0.10.2, jax.random.key(7)
  bool sharded = false;        // whether it is also drawn on eight devices
};

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Draw> draws() {
  Tensor a = constant(HostArray::from_vector<float>({0.02f, 0.5f, 1, 3.5f, 50}));
  Tensor alpha = constant(HostArray::from_vector<float>({0.5f, 1, 4}));
  Tensor rates = constant(HostArray::from_vector<float>({0, 0.5f, 3, 9.9f, 10, 40, 1000}));
  Tensor mean = constant(HostArray::from_vector<float>({1, -1}));
  Tensor covariance = constant(HostArray::from_vector<float>({2, 0.5f, 0.5f, 1}, {2, 2}));
  using Key = const Tensor&;
  return {
      {"gamma",
       [=](Key k) { return random::gamma(k, a, {5}); },
       {0, 0.3021133840084076, 0.2527778446674347, 5.6678314208984375, 43.7877082824707}},
      {"gamma of two dimensions",
       [](Key k) {
         return random::gamma(k, 2, {2, 3});
       },
       {2.0724189281463623, 0.8636598587036133, 0.9369039535522461, 3.621107339859009,
        0.7773277759552002, 1.0894323587417603},
       true},
      {"loggamma",
       [=](Key k) { return random::loggamma(k, a, {5}); },
       {-219.4018096923828, -1.1969528198242188, -1.375244140625, 1.7348065376281738,
        3.779353141784668}},
      {"beta",
       [=](Key k) { return random::beta(k, a, 2, {5}); },
       {0, 0.2121131718158722, 0.15362964570522308, 0.7109888792037964, 0.9713649749755859},
       true},
      {"dirichlet",
       [=](Key k) { return random::dirichlet(k, alpha, {2}); },
       {8.541380520910025e-05, 0.07965217530727386, 0.9202624559402466, 0.4422280490398407,
        0.0338268019258976, 0.523945152759552}},
      {"chisquare",
       [](Key k) { return random::chisquare(k, 3, {4}); },
       {3.022066593170166, 1.0437909364700317, 1.1556823253631592, 5.77679967880249}},
      {"t",
       [](Key k) { return random::student_t(k, 5, {4}); },
       {1.819894552230835, 0.14462463557720184, -0.4948047697544098, -0.6416307687759399}},
      {"f",
       [](Key k) { return random::fisher_f(k, 3, 5, {4}); },
       {0.48384320735931396, 1.1076066493988037, 1.6477009057998657, 0.6544947624206543}},
      {"generalized_normal",
       [](Key k) { return random::generalized_normal(k, 3, {4}); },
       {-0.11557121574878693, -0.6661776900291443, 0.05335377901792526, 0.3243449032306671}},
      {"ball",
       [](Key k) { return random::ball(k, 3, 2, {2}); },
       {-0.3638841509819031, 0.39458540081977844, 0.11975819617509842, -0.48726168274879456,
        0.13322879374027252, -0.14461813867092133}},
      {"poisson",
       [=](Key k) { return random::poisson(k, rates, {7}); },
       {0, 1, 1, 9, 9, 40, 1030},
       true},
      {"triangular",
       [](Key k) { return random::triangular(k, -1, 0.5, 2, {4}); },
       {0.7889692783355713, 1.662029504776001, 0.16738855838775635, 0.4134402275085449}},
      {"wald",
       [](Key k) { return random::wald(k, 1.5, {4}); },
       {0.41869986057281494, 1.783737063407898, 0.7993422746658325, 0.8879154920578003}},
      {"orthogonal, wide",
       [](Key k) { return random::orthogonal(k, 2, {}, DType::f32, 3); },
       {0.48973512649536133, -0.5602856278419495, 0.6680116653442383, 0.8697620034217834,
        0.36721739172935486, -0.3296443819999695}},
      {"multivariate_normal",
       [=](Key k) { return random::multivariate_normal(k, mean, covariance, {2}); },
       {1.6381428241729736, 0.9868217706680298, 0.26992714405059814, -1.3143558502197266}},
  };
}

// The number of draws that differ from JAX's by more than rounding.
std::size_t count_different(const HostArray& draws, const std::vector<double>& of_jax) {
  std::vector<double> got = draws.astype(DType::f64).to_vector<double>();
  EXPECT_EQ(got.size(), of_jax.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < std::min(got.size(), of_jax.size()); ++i)
    different += !(std::abs(got[i] - of_jax[i]) <= 2e-6 * (std::abs(of_jax[i]) + 0.1));
  return different;
}

// How many draws may differ. Rejection sampling may differ in single draws: on another CPU, a
// different rounding error can reject a candidate that JAX accepted, and then another number is
// drawn. A different algorithm would differ nearly everywhere.
std::size_t most_different(const Draw& draw) {
  constexpr std::string_view kUntilAccepted[] = {
      "gamma", "gamma of two dimensions", "loggamma", "beta",   "dirichlet", "chisquare", "t",
      "f",     "generalized_normal",      "ball",     "poisson"};
  bool until_accepted = std::find(std::begin(kUntilAccepted), std::end(kUntilAccepted),
                                  draw.name) != std::end(kUntilAccepted);
  return until_accepted ? draw.of_jax.size() / 3 : 0;
}

TEST_F(JaxRandom, DistributionsAreThoseOfJaxOnEveryMesh) {
  Mesh mesh({{"x", 4}, {"y", 2}});
  std::vector<HostArray> key{random::key(7).to_host()};
  for (const Draw& each : draws()) {
    SCOPED_TRACE(each.name);
    Body body = [&](std::span<const Tensor> x) { return std::vector<Tensor>{each.draw(x[0])}; };
    HostArray one = run(*compile(trace(key, body)), key)[0];
    EXPECT_LE(count_different(one, each.of_jax), most_different(each));
    if (!each.sharded) continue;
    Sharding rows(mesh, one.rank() == 1 ? P({"x", "y"}) : P("y"),
                  static_cast<std::size_t>(one.rank()));
    Body sharded = [&](std::span<const Tensor> x) {
      return std::vector<Tensor>{sharding_constraint(each.draw(x[0]), rows)};
    };
    HostArray eight = run(*compile(trace(key, sharded)), key)[0];
    EXPECT_LE(count_different(eight, each.of_jax), most_different(each));
  }
}

// For 4,000 draws, the standard error of the mean is at most 0.016 standard deviations.
TEST_F(JaxRandom, DrawsUntilAcceptedHaveTheirMeanAndVariance) {
  struct Moments {
    const char* name;
    Tensor draws;
    double mean, variance;
  };
  Tensor key = random::key(11);
  Shape many{4000};
  for (const Moments& each :
       {Moments{"gamma below 1", random::gamma(key, 0.3, many), 0.3, 0.3},
        Moments{"gamma", random::gamma(key, 4, many), 4, 4},
        Moments{"poisson", random::poisson(key, 3, many), 3, 3},
        Moments{"poisson of a large rate", random::poisson(key, 60, many), 60, 60}}) {
    Tensor draws = astype(each.draws, DType::f32);
    EXPECT_NEAR(mean(draws).item<float>(), each.mean, 0.06 * std::sqrt(each.variance)) << each.name;
    EXPECT_NEAR(var(draws).item<float>(), each.variance, 0.15 * each.variance) << each.name;
  }
}

TEST_F(JaxRandom, DrawsUntilAcceptedHaveNoDerivative) {
  Tensor key = random::key(1), a = from_host<float>({1, 2}, {2});
  EXPECT_THROW(grad([&](Tensor x) { return sum(random::gamma(key, x, {2})); })(a), Error);
  // A small step of the rate does not change the number of events.
  EXPECT_EQ(
      grad([&](Tensor x) { return sum(astype(random::poisson(key, x, {2}), DType::f32) + x); })(a)
          .to_vector<float>(),
      (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace meshard::conformance
