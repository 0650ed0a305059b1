// Derivatives with respect to captured values, in nested transforms: correct, or an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "meshard/autodiff/custom_vjp.h"
#include "meshard/autodiff/jacobian.h"
#include "meshard/autodiff/jvp.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/ops/checkpoint.h"
#include "meshard/ops/composite/control_flow.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"
#include "tests/support/unrolled.h"

namespace meshard {
namespace {

using Function = std::function<Tensor(const Tensor&)>;
using Numbers = std::vector<double>;

Tensor row_of(Numbers values) {
  std::int64_t size = std::ssize(values);
  return from_host(std::move(values), {size});
}
Tensor twice(const Tensor& x) { return stack({x, x}); }

// Computes f(x) through a transform. f is linear and element-wise, so its derivative in the
// direction of x is f(x) too.
struct Setting {
  const char* name;
  std::function<Tensor(const Function& f, const Tensor& x)> run;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"vmap", [](const Function& f, const Tensor& x) { return index(vmap(f)(twice(x)), {1}); }},
      {"checkpoint", [](const Function& f, const Tensor& x) { return checkpoint(f)(x); }},
      {"map", [](const Function& f, const Tensor& x) { return index(map(f, twice(x)), {1}); }},
      {"scan",
       [](const Function& f, const Tensor& x) {
         auto step = [&](Tensor c, Tensor row) { return std::pair(c + f(row) * 0.5, f(row)); };
         auto [total, each] = scan(step, zeros({2}, DType::f64), twice(x));
         return total * 3 - sum(each, 0);
       }},
      {"fori_loop",
       [](const Function& f, const Tensor& x) {
         auto step = [&](Tensor, Tensor c) { return c + f(x) * 0.5; };
         return fori_loop(0, 2, step, zeros({2}, DType::f64));
       }},
      {"repeat",
       [](const Function& f, const Tensor& x) {
         return repeat(2, x * 0, [&](const Tensor& h) { return h + f(x) * 0.5; });
       }},
      {"repeat of layers",
       [](const Function& f, const Tensor& x) {
         return repeat(twice(x), x * 0,
                       [&](const Tensor& p, const Tensor& h) { return h + f(p) * 0.5; });
       }},
      {"cond",
       [](const Function& f, const Tensor& x) {
         return cond(
             greater(sum(x), 1e6), [](Tensor t) { return t * 7; }, f, x);
       }},
      {"switch_case",
       [](const Function& f, const Tensor& x) {
         return switch_case(1, std::tuple([](Tensor t) { return t * 7; }, f), x);
       }},
      {"value_and_grad",
       [](const Function& f, const Tensor& x) {
         auto both = [&](Tensor t) {
           Tensor y = f(t);
           return std::pair(sum(y * x), y);
         };
         auto [result, gradient] = value_and_grad(both)(x);
         return gradient * 3 - result.second * 2;
       }},
      {"vjp",
       [](const Function& f, const Tensor& x) {
         auto [y, pullback] = vjp(f, x);
         return std::get<0>(pullback(x)) * 3 - y * 2;
       }},
      {"jvp",
       [](const Function& f, const Tensor& x) {
         auto [y, dy] = jvp(f, x, x);
         return dy * 3 - y * 2;
       }},
  };
  return all;
}

// Computes 3 w^2 by differentiation.
struct Derivative {
  const char* name;
  std::function<Tensor(const Tensor& w)> of;
};

Tensor cube(const Tensor& x) { return x * x * x; }
Tensor total_of_cubes(const Tensor& x) { return sum(cube(x)); }

const std::vector<Derivative>& derivatives() {
  static const std::vector<Derivative> all = {
      {"grad", [](const Tensor& w) { return grad(total_of_cubes)(w); }},
      {"vjp",
       [](const Tensor& w) { return std::get<0>(vjp(cube, w).second(ones({2}, DType::f64))); }},
      {"jvp", [](const Tensor& w) { return jvp(cube, w, ones({2}, DType::f64)).second; }},
      {"hvp", [](const Tensor& w) { return hvp(total_of_cubes, w, w * 0.5); }},
      {"jacrev", [](const Tensor& w) { return sum(jacrev(cube)(w), 0); }},
      {"jacfwd", [](const Tensor& w) { return sum(jacfwd(cube)(w), 0); }},
      {"captured by the loss",
       [](const Tensor& w) { return grad([&](Tensor u) { return sum(u * w * w * 3); })(w * 7); }},
      {"in a loop of its own",
       [](const Tensor& w) {
         auto loss = [](Tensor v) {
           return fori_loop(
               0, 2, [&](Tensor, Tensor c) { return c * sum(cube(v)) / c; }, ones({}, DType::f64));
         };
         return grad(loss)(w);
       }},
  };
  return all;
}

// The elements of a recorded value.
Numbers computed(const Tensor& recorded) {
  return interpret(Unrolled().run(recorded)).to_vector<double>();
}

void expect_near(const Numbers& got, const Numbers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-9);
}

const Numbers kW{1, 2}, kX{10, -3}, kExpected{30, -36}, kSecond{60, -36};

// Captures w in two nested settings: 3 w^2 x.
Tensor nested(const Setting& outer, const Setting& inner, const Derivative& derivative,
              const Tensor& w, const Tensor& x) {
  Function innermost = [&](const Tensor& y) { return derivative.of(w) * y; };
  return outer.run([&](const Tensor& y) { return inner.run(innermost, y); }, x);
}

using Made = std::function<Tensor(const Numbers&)>;
class Captures : public testing::TestWithParam<std::pair<const char*, Made>> {};

TEST_P(Captures, InEverySettingAndDerivative) {
  for (const Setting& setting : settings())
    for (const Derivative& derivative : derivatives()) {
      SCOPED_TRACE(cat(derivative.name, " in ", setting.name));
      Tensor w = GetParam().second(kW), x = row_of(kX);
      Function f = [&](const Tensor& y) { return derivative.of(w) * y; };
      expect_near(computed(setting.run(f, x)), kExpected);
    }
}

TEST_P(Captures, InSettingsInsideSettings) {
  for (const Setting& outer : settings())
    for (const Setting& inner : settings()) {
      SCOPED_TRACE(cat(inner.name, " in ", outer.name));
      Tensor w = GetParam().second(kW);
      expect_near(computed(nested(outer, inner, derivatives()[0], w, row_of(kX))), kExpected);
    }
}

// The derivative with respect to w of 3 w^2 x, summed: 6 w x.
TEST_P(Captures, OfADerivativeWithRespectToThem) {
  for (const Setting& setting : settings())
    for (const Derivative& derivative : derivatives()) {
      SCOPED_TRACE(cat("grad of ", derivative.name, " in ", setting.name));
      Tensor x = row_of(kX);
      auto loss = [&](Tensor w) {
        Function f = [&](const Tensor& y) { return derivative.of(w) * y; };
        return sum(setting.run(f, x));
      };
      expect_near(computed(grad(loss)(GetParam().second(kW))), kSecond);
    }
}

TEST_P(Captures, OfADerivativeInsideSettings) {
  for (const Setting& outer : settings())
    for (const Setting& inner : settings()) {
      SCOPED_TRACE(cat("in ", inner.name, " in ", outer.name));
      Tensor x = row_of(kX), w = GetParam().second(kW);
      // The outer setting takes the gradient with respect to a value that the inner one captures.
      Function f = [&](const Tensor& y) {
        auto loss = [&](Tensor v) {
          return sum(inner.run([&](const Tensor& t) { return cube(v) * t; }, y));
        };
        return grad(loss)(w);
      };
      expect_near(computed(outer.run(f, x)), kExpected);
    }
}

INSTANTIATE_TEST_SUITE_P(OfValues, Captures,
                         testing::Values(std::pair<const char*, Made>("Stored", row_of),
                                         std::pair<const char*, Made>("Recorded",
                                                                      [](const Numbers& w) {
                                                                        return row_of(w) * 1;
                                                                      })),
                         [](const auto& made) { return made.param.first; });

// Three levels deep: the backward passes of some bodies recompute other bodies.
TEST(CapturesThreeDeep, HaveTheirDerivative) {
  std::vector<const Setting*> bodies;
  for (const Setting& setting : settings())
    if (std::string_view name = setting.name; name == "vmap" || name == "checkpoint" ||
                                              name == "scan" || name == "repeat of layers" ||
                                              name == "cond")
      bodies.push_back(&setting);
  ASSERT_EQ(bodies.size(), 5u);
  Tensor x = row_of(kX), w = row_of(kW);
  for (const Setting* outer : bodies)
    for (const Setting* middle : bodies)
      for (const Setting* inner : bodies) {
        SCOPED_TRACE(cat(inner->name, " in ", middle->name, " in ", outer->name));
        auto loss = [&](Tensor v) {
          Function innermost = [&](const Tensor& t) { return cube(v) * t; };
          Function between = [&](const Tensor& t) { return inner->run(innermost, t); };
          return sum(outer->run([&](const Tensor& t) { return middle->run(between, t); }, x));
        };
        expect_near(computed(grad(loss)(w)), kExpected);
      }
}

// A value of an enclosing trace, as in jit.
TEST(CapturesOfATrace, InSettingsInsideSettings) {
  for (const Setting& outer : settings())
    for (const Setting& inner : settings()) {
      SCOPED_TRACE(cat(inner.name, " in ", outer.name));
      Tensor result, w;
      {
        internal::TraceScope jit;
        w = make_parameter({DType::f64, {2}}, std::nullopt, {});
        result = nested(outer, inner, derivatives()[0], w, row_of(kX));
      }
      Unrolled unrolled;
      unrolled.set(w, row_of(kW));
      expect_near(interpret(unrolled.run(result)).to_vector<double>(), kExpected);
    }
}

// clear_sharding() looks through a mark, but not through the input of a differentiated function.
TEST(CapturesOfATrace, WithAClearedSharding) {
  Sharding sharding(Mesh({{"x", 2}}), P("x"));
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    Tensor result, w;
    {
      internal::TraceScope jit;
      w = make_parameter({DType::f64, {2}}, sharding, {});
      auto loss = [&](Tensor v) {
        Function f = [&](const Tensor& y) { return clear_sharding(v) * y; };
        return sum(setting.run(f, row_of(kX)));
      };
      result = grad(loss)(w);
    }
    Unrolled unrolled;
    unrolled.set(w, row_of(kW));
    expect_near(interpret(unrolled.run(result)).to_vector<double>(), kX);
  }
}

// while_loop itself has no derivative.
TEST(CapturesOfAWhileLoop, AreValuesOfTheirPlace) {
  Tensor x = row_of(kX);
  auto looped = [&](const Function& f, const Tensor& at) {
    auto test = [](Tensor c) { return less(sum(abs(c)), 1e-6); };
    return while_loop(
        test, [&](Tensor c) { return c + f(at); }, zeros({2}, DType::f64));
  };
  for (const Derivative& derivative : derivatives()) {
    SCOPED_TRACE(derivative.name);
    Tensor w = row_of(kW);
    Function f = [&](const Tensor& y) { return derivative.of(w) * y; };
    expect_near(computed(looped(f, x)), kExpected);
    expect_near(computed(map([&](Tensor t) { return looped(f, t); }, twice(x))),
                {30, -36, 30, -36});
    EXPECT_TRUE(throws_error(
        [&] { (void)grad([&](Tensor v) { return sum(looped([&](Tensor) { return v; }, x)); })(w); },
        ErrorCode::kUnimplemented, {"while_loop has no derivative"}));
  }
}

// Two inputs with equal values are still two inputs: the loops over them are not merged.
TEST(CapturesOfATrace, EqualInputsHaveDerivativesOfTheirOwn) {
  auto total = [](Tensor x) {
    return sum(repeat(2, x, [](const Tensor& h) { return h * h * h; }));
  };
  auto both = [&](Tensor a, Tensor b) { return sum(grad(total)(a)) + sum(grad(total)(b)) * 5; };
  Tensor w, first, second;
  {
    internal::TraceScope jit;
    w = make_parameter({DType::f64, {2}}, std::nullopt, {});
    std::tie(first, second) = grad<0, 1>(both)(w, w);
  }
  Unrolled unrolled;
  unrolled.set(w, row_of(kW));
  // The second derivative of x^9: 72 x^7.
  expect_near(interpret(unrolled.run(first)).to_vector<double>(), {72, 9216});
  expect_near(interpret(unrolled.run(second)).to_vector<double>(), {360, 46080});
}

// A constant is recorded again inside a body.
TEST(CapturesOfConstants, InEverySettingAndDerivative) {
  for (const Setting& setting : settings())
    for (const Derivative& derivative : derivatives()) {
      SCOPED_TRACE(cat(derivative.name, " in ", setting.name));
      Tensor w = full({2}, 2.0, DType::f64), x = row_of(kX);
      Function f = [&](const Tensor& y) { return derivative.of(w) * y; };
      expect_near(computed(setting.run(f, x)), {120, -36});
    }
}

TEST(CapturesOfPullbacks, MadeOutsideAndCalledInEverySetting) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    auto pullback = vjp(cube, row_of(kW)).second;
    Function f = [&](const Tensor& y) { return std::get<0>(pullback(y)); };
    expect_near(computed(setting.run(f, row_of(kX))), kExpected);
    auto push = linearize(cube, row_of(kW)).second;
    expect_near(computed(setting.run([&](const Tensor& y) { return push(y); }, row_of(kX))),
                kExpected);
  }
}

TEST(CapturesOfPullbacks, CalledWhenTheirBodyHasEndedAreAnError) {
  std::function<Tensor(const Tensor&)> kept;
  Function f = [&](const Tensor& y) {
    auto pullback = vjp(cube, y).second;
    kept = [=](const Tensor& t) { return std::get<0>(pullback(t)); };
    return y;
  };
  (void)map(f, ones({3, 2}, DType::f64));
  Tensor t = ones({2}, DType::f64);
  EXPECT_TRUE(throws_error([&] { (void)kept(t); }, ErrorCode::kInvalidArgument,
                           {"[grad]", "outside its trace", "captures_test.cc"}));
  EXPECT_TRUE(throws_error([&] { (void)map([&](Tensor x) { return kept(x); }, twice(t)); },
                           ErrorCode::kInvalidArgument, {"[grad]", "outside its trace"}));
}

// backward() itself, for outputs inside a body with respect to values outside.
TEST(CapturesOfBackward, AValueOutsideAndItsNameInsideAreOne) {
  Tensor w = row_of(kW), square = w * w;
  Function f = [&](const Tensor& y) {
    Tensor cubes = square * w, seed = y;
    return backward(std::span(&cubes, 1), std::span(&seed, 1), std::span(&w, 1), {})[0];
  };
  expect_near(computed(map(f, twice(row_of(kX)))), {30, -36, 30, -36});
  // Two bodies deep, through a value that is recorded in the outer body.
  Function deep = [&](const Tensor& y) {
    Tensor between = square * 2;
    auto body = [&](const Tensor& t) {
      Tensor cubes = between * w * 0.5;
      return backward(std::span(&cubes, 1), std::span(&t, 1), std::span(&w, 1), {})[0];
    };
    return checkpoint(body)(y);
  };
  expect_near(computed(map(deep, twice(row_of(kX)))), {30, -36, 30, -36});
}

TEST(CapturesOfBackward, AnIndependentOutputHasZeros) {
  Tensor w = row_of(kW), other = row_of(kX);
  Function f = [&](const Tensor& y) { return grad([&](Tensor) { return sum(other * y); })(w); };
  expect_near(computed(map(f, twice(row_of(kX)))), {0, 0, 0, 0});
}

TEST(CapturesOfBackward, AValueThatForgotItsOperandsIsAnError) {
  Tensor w = row_of(kW), y = w * w, z = y * 2;
  y.value().node()->set_storage(0, StoragePtr(w.value().storage()));
  y.value().node()->forget_operands();
  Tensor seed = ones({2}, DType::f64);
  EXPECT_TRUE(throws_error(
      [&] { (void)backward(std::span(&z, 1), std::span(&seed, 1), std::span(&w, 1), {}); },
      ErrorCode::kFailedPrecondition, {"multiply", "was computed before", "captures_test.cc"}));
}

// f(x) = w x with a custom derivative, which is w.
auto custom_product(const Tensor& w) {
  return custom_vjp([w](Tensor x) { return std::pair(w * x, std::tuple<>()); },
                    [w](std::tuple<>, Tensor g) { return w * g; });
}

TEST(CapturesOfCustomVjp, AreConstantsInEverySetting) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    Tensor w = row_of(kW);
    Function f = [&](const Tensor& y) {
      auto loss = [&](Tensor v) { return sum(custom_product(w)(v) * w * 3); };
      return grad(loss)(w) * y;
    };
    expect_near(computed(setting.run(f, row_of(kX))), kExpected);
  }
}

TEST(CapturesOfCustomVjp, ADerivativeWithRespectToThemIsAnError) {
  auto message = [](const std::function<void()>& call) {
    return throws_error(call, ErrorCode::kUnimplemented,
                        {"[custom_vjp]", "a captured value", "Pass the value as an argument"});
  };
  Tensor x = row_of(kX), w = row_of(kW);
  auto direct = [&](Tensor v) { return sum(custom_product(v)(x)); };
  EXPECT_TRUE(message([&] { (void)grad(direct)(w); }));
  EXPECT_TRUE(message([&] {
    (void)grad([&](Tensor v) { return sum(custom_product(v * 2)(v)); })(w);
  })) << "also where the argument depends on the same value";
  EXPECT_TRUE(message([&] { (void)jvp(direct, w, w); }));
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    auto loss = [&](Tensor v) {
      return sum(setting.run([&](const Tensor& y) { return custom_product(v)(y); }, x));
    };
    EXPECT_TRUE(message([&] { (void)grad(loss)(w); }));
  }
  // Declared constant with stop_gradient().
  auto constant = [&](Tensor v) { return sum(custom_product(stop_gradient(v))(v)); };
  expect_near(computed(grad(constant)(w)), kW);
}

}  // namespace
}  // namespace meshard
