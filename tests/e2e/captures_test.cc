// Derivatives with respect to captured values in compiled programs: nested loops, branches, jit and
// manual regions. meshard/autodiff/captures_test.cc nests all of them, without a compiler.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using CapturesOnDevices = OnDevices;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

Tensor total_of_cubes(Tensor w) { return sum(w * w * w); }

// 3 w^2 x for w = {1, 2}.
TEST_F(CapturesOnDevices, TheGradientInALoopIsThatOutside) {
  auto g = grad(total_of_cubes);
  for (bool computed : {false, true}) {
    Tensor w = from_host<float>({1, 2}, {2}), x = ones({1});
    if (!computed) w = w * 1;
    EXPECT_THAT(map([&](Tensor t) { return g(w) * t; }, x).to_vector<float>(), ElementsAre(3, 12));
    auto jitted = jit([&](Tensor t) { return map([&](Tensor s) { return g(w) * s; }, t); });
    EXPECT_THAT(jitted(x).to_vector<float>(), ElementsAre(3, 12));
    auto inside = [&](Tensor t) { return jit([&](Tensor s) { return g(w) * s; })(t); };
    EXPECT_THAT(map(inside, x).to_vector<float>(), ElementsAre(3, 12));
    // The derivative of 3 w^2.
    auto sum_of_gradients = [&](Tensor v) {
      return sum(map([&](Tensor t) { return g(v) * t; }, x));
    };
    EXPECT_THAT(grad(sum_of_gradients)(w).to_vector<float>(), ElementsAre(6, 12));
    EXPECT_THAT(jit(grad(sum_of_gradients))(w).to_vector<float>(), ElementsAre(6, 12));
  }
}

TEST_F(CapturesOnDevices, AJittedFunctionThatCapturesTheInputIsDifferentiated) {
  Tensor w = from_host<float>({1, 2}, {2}), x = from_host<float>({10, -3}, {2});
  auto loss = [&](Tensor v) {
    auto product = jit([v](Tensor t) { return v * v * t; });
    return sum(product(x));
  };
  EXPECT_THAT(grad(loss)(w).to_vector<float>(), ElementsAre(20, -12));
  // A function that was compiled before, for other values.
  Tensor current = w * 5;
  auto product = jit([&](Tensor t) { return current * current * t; });
  EXPECT_THAT(product(x).to_vector<float>(), ElementsAre(250, -300));
  auto other = [&](Tensor v) {
    current = v;
    return sum(product(x));
  };
  EXPECT_THAT(grad(other)(w).to_vector<float>(), ElementsAre(20, -12));
}

// Otherwise the loop would have to run on two sets of devices.
TEST_F(CapturesOnDevices, WhatNoResultNeedsDoesNotDecideWhereABodyRuns) {
  Mesh left({{"x", 2}}, {0, 1}), right({{"x", 2}}, {2, 3});
  Tensor x = mark_sharding(from_host<float>({1, 2}, {2}), left, P("x"));
  Tensor other = mark_sharding(from_host<float>({5, 7}, {2}), right, P("x"));
  auto twice = [&](const Tensor& t) {
    Tensor unused = mark_sharding(other * 2, right, P());
    return t * 2;
  };
  EXPECT_THAT(repeat(3, x, twice).to_vector<float>(), ElementsAre(8, 16));
  EXPECT_THAT(map(twice, x).to_vector<float>(), ElementsAre(2, 4));
  Tensor yes = from_host<float>({1, 1}, {2});
  EXPECT_THAT(cond(greater(sum(yes), 0), twice, twice, x).to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(jit([&](const Tensor& t) { return repeat(3, t, twice); })(x).to_vector<float>(),
              ElementsAre(8, 16));
  EXPECT_THAT(grad([&](const Tensor& t) { return sum(repeat(3, t, twice)); })(x).to_vector<float>(),
              ElementsAre(8, 8));
}

// A value captured at every depth; its derivative is compared with differences in f64.
Tensor tangle(const Tensor& w) {
  Tensor x = arange(1.0, 3.0) * 0.25;
  auto inner = [&](Tensor v) {
    auto step = [&](Tensor c, Tensor row) {
      auto branch = [&](Tensor t) { return sin(t * w) + v * row; };
      Tensor next = cond(
          greater(sum(row), 0.3), branch, [&](Tensor t) { return t * v; }, c);
      return std::pair(next, sum(next * w));
    };
    auto [last, each] = scan(checkpoint(step), w, astype(stack({x, x + 1, x * 2}), DType::f64));
    return sum(last) + sum(each * each);
  };
  auto of_member = [&](Tensor t) {
    Tensor start = zeros({2}, DType::f64);
    return fori_loop(
        0, 2, [&](Tensor, Tensor c) { return c * 0.5 + grad(inner)(w * t); }, start);
  };
  return sum(vmap(of_member)(from_host<double>({1, 0.5}, {2})) * w);
}

TEST_F(CapturesOnDevices, ATangleIsTheDifferences) {
  std::vector<double> at{0.4, -0.7}, expected;
  auto value = jit(tangle);
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto moved = [&](double by) {
      std::vector<double> values = at;
      values[i] += by;
      return value(from_host(values, {2})).item<double>();
    };
    expected.push_back((moved(1e-5) - moved(-1e-5)) / 2e-5);
  }
  Tensor w = from_host(at, {2});
  EXPECT_THAT(jit(grad(tangle))(w).to_vector<double>(), Pointwise(DoubleNear(1e-7), expected));
  EXPECT_THAT(grad(tangle)(w).to_vector<double>(), Pointwise(DoubleNear(1e-7), expected));
  auto [y, pullback] = vjp(tangle, w);
  EXPECT_THAT(std::get<0>(pullback(ones({}, DType::f64))).to_vector<double>(),
              Pointwise(DoubleNear(1e-7), expected));
  double along = jvp(tangle, w, from_host<double>({1, 2}, {2})).second.item<double>();
  EXPECT_NEAR(along, expected[0] + 2 * expected[1], 1e-6);
}

// A captured number is the same on all devices, so its cotangent is the sum of the devices'
// cotangents.
TEST_F(CapturesOnDevices, InManualRegions) {
  Mesh mesh({{"x", 4}});
  Tensor data = counting({4}, 1), w = from_host<float>({2}, {});
  for (bool jitted : {false, true}) {
    auto run = [&](auto f, const Tensor& argument) {
      return (jitted ? jit(f)(argument) : f(argument)).template to_vector<float>();
    };
    // grad around the region: d/dw of the sum of w^3 x is 3 w^2 times 10.
    auto around = grad([&](Tensor v) {
      return sum(manual(mesh, P("x"), P("x"), [&](Tensor part) { return part * v * v * v; })(data));
    });
    EXPECT_THAT(run(around, w), ElementsAre(120));
    // grad inside the region, with respect to each device's part; also in a loop.
    auto of_part = [](Tensor part) { return grad([](Tensor p) { return sum(p * p * p); })(part); };
    EXPECT_THAT(run(manual(mesh, P("x"), P("x"), of_part), data), ElementsAre(3, 12, 27, 48));
    auto in_loop = [&](Tensor part) {
      auto step = [&](Tensor, Tensor c) { return c + of_part(part) * 0.5; };
      return fori_loop(0, 2, step, part * 0);
    };
    EXPECT_THAT(run(manual(mesh, P("x"), P("x"), in_loop), data), ElementsAre(3, 12, 27, 48));
    // A loop in the region, with grad around both, with respect to a captured value.
    auto both = grad([&](Tensor v) {
      auto looped = [&](Tensor part) {
        return fori_loop(
            0, 2, [&](Tensor, Tensor c) { return c + part * v * v * v * 0.5; }, part * 0);
      };
      return sum(manual(mesh, P("x"), P("x"), looped)(data));
    });
    EXPECT_THAT(run(both, w), ElementsAre(120));
  }
}

// grad inside the region, with respect to a captured number: the sum of all devices' contributions
// is a full value, which cannot be combined with local values there.
TEST_F(CapturesOnDevices, WithRespectToANumberInsideAManualRegionIsAnError) {
  Mesh mesh({{"x", 4}});
  Tensor data = counting({4}, 1), w = from_host<float>({2}, {});
  auto slope = [&](Tensor part) {
    return grad([&](Tensor v) { return sum(part * v * v * v); })(w) * part;
  };
  EXPECT_TRUE(throws_error([&] { (void)manual(mesh, P("x"), P("x"), slope)(data); },
                           ErrorCode::kInvalidArgument,
                           {"inside manual axes cannot be combined with a full value"}));
  auto in_loop = [&](Tensor part) {
    auto step = [&](Tensor, Tensor c) { return c + slope(part) * 0.5; };
    return fori_loop(0, 2, step, part * 0);
  };
  EXPECT_TRUE(throws_error([&] { (void)manual(mesh, P("x"), P("x"), in_loop)(data); },
                           ErrorCode::kUnimplemented,
                           {"[grad]", "the same on all devices along", "outside of the loop"}));
}

}  // namespace
}  // namespace meshard
