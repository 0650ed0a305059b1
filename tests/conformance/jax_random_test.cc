// Random numbers, computed on the plugin, against JAX's; and the same bits however they are
// sharded.
#include <cmath>

#include "meshard/meshard.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/jax_cases.h"

namespace meshard::conformance {
namespace {

using JaxRandom = OnDevices;

Shape shape_of(const Json& params) {
  return Shape(params.at("shape").get<std::vector<std::int64_t>>());
}

// What the case asks for, from a key (for blocks: key and counter); undefined if it is not one of
// ours.
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

// Rounding errors that the last operations may differ by; integers, bools and plain uniforms are
// exact.
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
    // The first dimension over 8 devices, mostly uneven.
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

}  // namespace
}  // namespace meshard::conformance
