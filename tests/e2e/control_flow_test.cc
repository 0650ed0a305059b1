// Loops, branches and checkpoints on real devices: values against formulas, derivatives against
// formulas and differences, and shardings inside bodies.
#include <cmath>
#include <functional>
#include <map>

#include "meshard/meshard.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using ControlFlow = OnDevices;

Tensor vector_of(std::vector<float> values) {
  std::int64_t size = std::ssize(values);
  return from_host(std::move(values), {size});
}

// Central differences of a function of one vector, element by element, in f64.
std::vector<double> differences(const std::function<Tensor(const Tensor&)>& f,
                                const std::vector<double>& at) {
  std::vector<double> out;
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto moved = [&](double by) {
      std::vector<double> values = at;
      values[i] += by;
      return f(from_host(values, {std::ssize(at)})).item<double>();
    };
    out.push_back((moved(1e-5) - moved(-1e-5)) / 2e-5);
  }
  return out;
}

void expect_derivative(const std::function<Tensor(const Tensor&)>& f,
                       const std::vector<double>& at) {
  std::vector<double> expected = differences(f, at);
  std::vector<double> got = jit(grad(f))(from_host(at, {std::ssize(at)})).to_vector<double>();
  for (std::size_t i = 0; i < at.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-7 * (1 + std::abs(expected[i]))) << "element " << i;
}

// Matches elements that are equal up to rounding.
auto near(const Tensor& expected) {
  return testing::Pointwise(testing::DoubleNear(1e-12), expected.to_vector<double>());
}

TEST_F(ControlFlow, BranchesEndWithDifferentMarks) {
  Mesh mesh({{"x", 2}});
  auto f = [&](const Tensor& i, const Tensor& x) {
    return cond(
        equal(i, 1), [&](Tensor t) { return mark_sharding(t, mesh, P()); },
        [&](Tensor t) { return mark_sharding(t * 2, mesh, P("x")); }, x);
  };
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {2, 2});
  for (int i : {0, 1}) {
    Tensor index = from_host(HostArray::scalar(i));
    float factor = i == 1 ? 1 : 2;
    std::vector<float> expected{factor, 2 * factor, 3 * factor, 4 * factor};
    EXPECT_EQ(f(index, x).to_vector<float>(), expected);
    EXPECT_EQ(jit(f)(index, x).to_vector<float>(), expected);
    auto loss = [&](const Tensor& t) { return sum(f(index, t)); };
    EXPECT_EQ(grad(loss)(x).to_vector<float>(), std::vector<float>(4, factor));
  }
}

TEST_F(ControlFlow, ABranchEndsWithAMarkInACheckpoint) {
  Mesh mesh({{"x", 2}});
  auto f = [&](const Tensor& i, const Tensor& x) {
    return cond(
        equal(i, 1),
        [&](Tensor t) {
          return checkpoint([&](Tensor u) { return mark_sharding(u, mesh, P()); })(t);
        },
        [&](Tensor t) { return mark_sharding(t * 2, mesh, P("x")); }, x);
  };
  Tensor x = mark_sharding(from_host(std::vector<float>{1, 2}, {2, 1}), mesh, P("x"));
  EXPECT_EQ(f(from_host(HostArray::scalar(1)), x).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(f(from_host(HostArray::scalar(0)), x).to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(ControlFlow, ScanSumsUp) {
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  auto sums = [](const Tensor& rows, bool reverse) {
    return scan([](Tensor c, Tensor row) { return std::pair(c + row, c * 10); }, zeros({2}), rows,
                {.reverse = reverse});
  };
  auto [total, before] = jit([&](Tensor rows) { return sums(rows, false); })(x);
  EXPECT_EQ(total.to_vector<float>(), (std::vector<float>{9, 12}));
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{0, 0, 10, 20, 40, 60}));
  // Lazily, and in reverse.
  auto [again, after] = sums(x, true);
  EXPECT_EQ(again.to_vector<float>(), (std::vector<float>{9, 12}));
  EXPECT_EQ(after.to_vector<float>(), (std::vector<float>{80, 100, 50, 60, 0, 0}));
}

struct Layer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};

TEST_F(ControlFlow, RepeatIsThePlainLoop) {
  std::vector<Layer> layers;
  for (int i = 0; i < 3; ++i)
    layers.push_back({vector_of({0.5f + static_cast<float>(i), -1, 2}), vector_of({1, 2, 3})});
  Tensor x = vector_of({0.1f, 0.2f, 0.3f});
  auto f = [](const Layer& layer, const Tensor& h) { return tanh(h * layer.w + layer.b); };
  auto plain = jit([&](std::vector<Layer> all, Tensor h) {
    for (const Layer& layer : all) h = f(layer, h);
    return h;
  });
  auto rolled = jit([&](Layer all, Tensor h) { return repeat(all, h, f); });
  Layer stacked = stack_structures(layers);
  EXPECT_EQ(stacked.w.shape(), (Shape{3, 3}));
  EXPECT_EQ(slice_structure(stacked, 2).w.to_vector<float>(), layers[2].w.to_vector<float>());
  std::vector<float> expected = plain(layers, x).to_vector<float>();
  std::vector<float> got = rolled(stacked, x).to_vector<float>();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);

  auto loss = [&](const Layer& all) { return sum(repeat(all, x, f)); };
  auto lean = [&](const Layer& all) { return sum(repeat(all, x, checkpoint(f))); };
  auto plain_loss = [&](const std::vector<Layer>& all) {
    Tensor h = x;
    for (const Layer& layer : all) h = f(layer, h);
    return sum(h);
  };
  Layer gradient = jit(grad(loss))(stacked);
  EXPECT_THAT(jit(grad(lean))(stacked).w.to_vector<float>(),
              testing::Pointwise(testing::FloatNear(1e-6f), gradient.w.to_vector<float>()));
  std::vector<Layer> wanted = jit(grad(plain_loss))(layers);
  for (std::size_t i = 0; i < 3; ++i) {
    Layer one = slice_structure(gradient, static_cast<std::int64_t>(i));
    std::vector<float> a = one.w.to_vector<float>(), b = wanted[i].w.to_vector<float>();
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(a[k], b[k], 1e-6);
  }
}

TEST_F(ControlFlow, WhileLoopUntil) {
  // Square root by Newton's method.
  auto root = jit([](Tensor x) {
    return while_loop([x](Tensor y) { return greater(abs(y * y - x), 1e-4); },
                      [x](Tensor y) { return (y + x / y) * 0.5; }, x);
  });
  EXPECT_NEAR(root(from_host(HostArray::scalar(7.0f))).item<float>(), 2.64576721, 1e-6);
  // A structure as the carry, with numbers and lazy values.
  auto [i, total] = while_loop(
      [](const std::pair<Tensor, Tensor>& c) { return less(c.first, 5); },
      [](const std::pair<Tensor, Tensor>& c) { return std::pair(c.first + 1, c.second + c.first); },
      std::pair(constant(HostArray::scalar(0)), constant(HostArray::scalar(0))));
  EXPECT_EQ(total.item<int>(), 10);
  EXPECT_EQ(i.item<int>(), 5);
}

TEST_F(ControlFlow, ForiLoop) {
  Tensor x = vector_of({1, 2});
  auto f = [](Tensor i, Tensor c) { return c * 2 + astype(i, DType::f32); };
  EXPECT_EQ(fori_loop(1, 4, f, x).to_vector<float>(), (std::vector<float>{8 + 11, 16 + 11}));
  EXPECT_EQ(fori_loop(4, 1, f, x).to_vector<float>(), (std::vector<float>{1, 2}));
  auto traced = jit([&](Tensor end, Tensor c) { return fori_loop(1, end, f, c); });
  EXPECT_EQ(traced(4, x).to_vector<float>(), (std::vector<float>{19, 27}));
  EXPECT_EQ(fori_loop(
                0, 3, [](Tensor, Tensor c) { return c * 2; }, 1.5)
                .item<float>(),
            12);
}

TEST_F(ControlFlow, Branches) {
  Tensor x = vector_of({1, 4});
  auto chosen = jit([](Tensor p, Tensor v) {
    return cond(
        greater(p, 0), [](Tensor t) { return sqrt(t); }, [](Tensor t) { return -t; }, v);
  });
  EXPECT_EQ(chosen(1, x).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(chosen(-1, x).to_vector<float>(), (std::vector<float>{-1, -4}));
  auto several = jit([](Tensor i, Tensor v) {
    return switch_case(i,
                       {[](Tensor t) { return t; }, [](Tensor t) { return t + t; },
                        [v](Tensor t) { return t * v; }},
                       v);
  });
  EXPECT_EQ(several(-5, x).to_vector<float>(), (std::vector<float>{1, 4}));
  EXPECT_EQ(several(1, x).to_vector<float>(), (std::vector<float>{2, 8}));
  EXPECT_EQ(several(9, x).to_vector<float>(), (std::vector<float>{1, 16}));
}

TEST_F(ControlFlow, MapTakesEachSlice) {
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(map([](Tensor row) { return sum(row); }, x).to_vector<float>(),
            (std::vector<float>{3, 7}));
}

// Unrolling changes only the compiled program, not the results.
TEST_F(ControlFlow, SeveralStepsATurn) {
  auto run = [](bool reverse, std::int64_t unroll) {
    return [=](const Tensor& x, const Tensor& rows) {
      Tensor w = sin(x);
      auto step = [w](Tensor c, Tensor row) {
        Tensor next = tanh(c * w + row);
        return std::pair(next, next * row);
      };
      auto [last, ys] = scan(step, x, rows, {.reverse = reverse, .unroll = unroll});
      return sum(last) + sum(ys * ys * ys);
    };
  };
  Tensor x = from_host(std::vector<double>{0.3, -0.7, 1.1}, {3});
  Tensor rows = sin(astype(counting({7, 3}), DType::f64));
  Tensor members = stack({x, x * 2}), member_rows = stack({rows, rows * rows});
  for (bool reverse : {false, true}) {
    auto [value, gradients] = jit(value_and_grad<0, 1>(run(reverse, 1)))(x, rows);
    Tensor each = jit(vmap(grad(run(reverse, 1))))(members, member_rows);
    for (std::int64_t unroll : {2, 3, 7, 100}) {
      SCOPED_TRACE(cat("unroll ", unroll, reverse ? " reverse" : ""));
      auto [again, same] = jit(value_and_grad<0, 1>(run(reverse, unroll)))(x, rows);
      EXPECT_THAT(again.to_vector<double>(), near(value));
      EXPECT_THAT(std::get<0>(same).to_vector<double>(), near(std::get<0>(gradients)));
      EXPECT_THAT(std::get<1>(same).to_vector<double>(), near(std::get<1>(gradients)));
      EXPECT_THAT(jit(vmap(grad(run(reverse, unroll))))(members, member_rows).to_vector<double>(),
                  near(each));
    }
  }
}

// ---- Derivatives.

const std::vector<double> kPoint{0.3, -0.7, 1.1};

Tensor powers(const Tensor& x) {
  // x^4 by a loop, with known derivatives.
  return sum(fori_loop(
      0, 3, [x](Tensor, Tensor c) { return c * x; }, x));
}

TEST_F(ControlFlow, DerivativesOfALoopOfEveryOrder) {
  Tensor x = from_host(kPoint, {3});
  auto first = grad(powers);
  auto second = grad([&](const Tensor& t) { return sum(first(t)); });
  auto third = grad([&](const Tensor& t) { return sum(second(t)); });
  std::vector<double> d1 = jit(first)(x).to_vector<double>();
  std::vector<double> d2 = jit(second)(x).to_vector<double>();
  std::vector<double> d3 = jit(third)(x).to_vector<double>();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(d1[i], 4 * std::pow(kPoint[i], 3), 1e-12);
    EXPECT_NEAR(d2[i], 12 * std::pow(kPoint[i], 2), 1e-12);
    EXPECT_NEAR(d3[i], 24 * kPoint[i], 1e-12);
  }
  // Also lazily.
  EXPECT_NEAR(second(x).to_vector<double>()[1], 12 * 0.49, 1e-12);
}

Tensor all_kinds(const Tensor& x) {
  auto step = [x](Tensor c, Tensor slice) {
    Tensor h = cond(
        greater(sum(c), 0), [](Tensor t) { return sin(t); }, [x](Tensor t) { return t * exp(x); },
        c);
    Tensor inner = fori_loop(
        0, 2, [slice](Tensor i, Tensor t) { return tanh(t * slice + astype(i, DType::f64)); }, h);
    return std::pair(inner, inner * slice);
  };
  Tensor slices = stack({x, x * x, x + 1});
  auto [last, ys] = scan(step, x, slices);
  return sum(last) + sum(ys * ys);
}

TEST_F(ControlFlow, DerivativesThroughNestedControlFlow) {
  expect_derivative(all_kinds, kPoint);
  expect_derivative([](const Tensor& x) { return sum(square(grad(all_kinds)(x))); }, kPoint);
}

TEST_F(ControlFlow, DerivativesThroughCheckpoints) {
  const CheckpointPolicy policies[] = {CheckpointPolicy::nothing(), CheckpointPolicy::dots(),
                                       CheckpointPolicy::named({"h"}),
                                       CheckpointPolicy::everything()};
  for (const CheckpointPolicy& policy : policies) {
    auto f = [&](const Tensor& x) {
      Tensor w = stack({x, sin(x), x * 2});
      auto layer = checkpoint(
          [&](const Tensor& h) { return tanh(checkpoint_name(matmul(w, sin(h)), "h")); }, policy);
      return sum(layer(layer(x)));
    };
    auto scanned = [&](const Tensor& x) {
      Tensor w = stack({x, sin(x), x * 2});
      auto layer =
          checkpoint([](const Tensor& h,
                        const Tensor& m) { return tanh(checkpoint_name(matmul(m, sin(h)), "h")); },
                     policy);
      return sum(repeat(4, x, [&](const Tensor& h) { return layer(h, w); }));
    };
    SCOPED_TRACE(policy.residuals().to_string());
    expect_derivative(f, kPoint);
    expect_derivative(scanned, kPoint);
    expect_derivative([&](const Tensor& x) { return sum(square(grad(scanned)(x))); }, kPoint);
  }
}

TEST_F(ControlFlow, AWhileLoopHasNoDerivative) {
  auto f = [](const Tensor& x) {
    return sum(
        while_loop([](Tensor c) { return less(sum(c), 9); }, [](Tensor c) { return c + c; }, x));
  };
  try {
    grad(f)(vector_of({1, 2}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("use scan, or fori_loop with bounds that are"));
  }
}

// ---- Shardings.

TEST_F(ControlFlow, ShardedLoopsGiveTheSame) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto loss = [](const Tensor& w, const Tensor& x) {
    auto f = [](const Tensor& layer, const Tensor& h) { return tanh(matmul(h, layer)); };
    return sum(square(repeat(w, x, f)));
  };
  std::vector<float> values(3 * 8 * 8), rows(4 * 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.3f * static_cast<float>(std::sin(double(i)));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(std::cos(double(i)));
  Tensor w = from_host(values, {3, 8, 8}), x = from_host(rows, {4, 8});
  auto step = jit(value_and_grad<0, 1>(loss));
  auto [value, gradients] = step(w, x);
  Tensor sharded_w = mark_sharding(w, mesh, P(none, none, "model"));
  Tensor sharded_x = mark_sharding(x, mesh, P("data"));
  auto [again, sharded] = step(sharded_w, sharded_x);
  EXPECT_NEAR(again.item<float>(), value.item<float>(), 1e-4);
  EXPECT_EQ(std::get<0>(sharded).sharding(), sharded_w.sharding());
  std::vector<float> a = std::get<0>(sharded).to_vector<float>();
  std::vector<float> b = std::get<0>(gradients).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST_F(ControlFlow, ACarryKeepsItsSharding) {
  Mesh mesh({{"x", 8}});
  auto f = jit([&](Tensor t) {
    Tensor start = mark_sharding(t * 0, mesh, P("x"));
    return scan([&](Tensor c, Tensor) { return std::pair(c + 1, std::tuple<>()); }, start,
                zeros({3}))
        .first;
  });
  Tensor y = f(zeros({16}));
  EXPECT_EQ(y.sharding(), Sharding(mesh, P("x"), 1));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(16, 3.0f));
}

TEST_F(ControlFlow, UnevenSizesInsideBodies) {
  Mesh mesh({{"x", 4}});
  auto f = jit([&](Tensor t) {
    return fori_loop(
        0, 3, [&](Tensor, Tensor c) { return mark_sharding(c + 1, mesh, P("x")); },
        mark_sharding(t, mesh, P("x")));
  });
  EXPECT_EQ(f(counting({7})).to_vector<float>(), (std::vector<float>{3, 4, 5, 6, 7, 8, 9}));
}

// ---- Explicit axes: inside, shardings are part of the values, as they are outside.

Mesh explicit_axes() {
  return Mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
}

TEST_F(ControlFlow, ExplicitAxesInsideBodies) {
  Mesh mesh = explicit_axes();
  Sharding rows(mesh, P("data", none)), both(mesh, P("data", "model"));
  Tensor host_x = counting({4, 8}, -16) / 16, host_w = sin(counting({3, 8, 8})) / 4;
  Tensor x = mark_sharding(host_x, mesh, P("data", none));
  Tensor w = mark_sharding(host_w, mesh, P(none, none, "model"));
  auto model = [&](bool is_sharded) {
    return [&, is_sharded](const Tensor& weights, const Tensor& start) {
      auto [last, sums] = scan(
          [&](Tensor h, Tensor layer) {
            Tensor next = tanh(matmul(h, layer));
            if (is_sharded) {
              EXPECT_EQ(layer.sharding()->spec(), P(none, "model")) << "a slice";
              EXPECT_EQ(next.sharding(), both);
              next = sharding_constraint(next, rows);
            }
            return std::pair(next, sum(next, 1));
          },
          start, weights);
      if (is_sharded) {
        EXPECT_EQ(last.sharding(), rows);
        EXPECT_EQ(sums.sharding(), Sharding(mesh, P(none, "data"))) << "stacked";
      }
      return sum(last * last) + sum(sums);
    };
  };
  auto [expected, wanted] = jit(value_and_grad<0, 1>(model(false)))(host_w, host_x);
  auto [value, got] = jit(value_and_grad<0, 1>(model(true)))(w, x);
  EXPECT_NEAR(value.item<float>(), expected.item<float>(), 1e-4);
  EXPECT_EQ(std::get<0>(got).sharding(), w.sharding());
  EXPECT_EQ(std::get<1>(got).sharding(), rows);
  EXPECT_THAT(
      std::get<0>(got).to_vector<float>(),
      testing::Pointwise(testing::FloatNear(1e-5f), std::get<0>(wanted).to_vector<float>()));
}

TEST_F(ControlFlow, ExplicitAxesInBranchesAndWhileLoops) {
  Mesh mesh = explicit_axes();
  Sharding rows(mesh, P("data", none));
  Tensor x = mark_sharding(counting({4, 8}), mesh, P("data", none));
  auto f = jit([&](Tensor p, Tensor t) {
    Tensor chosen = cond(
        greater(p, 0), [](Tensor y) { return y + 1; }, [](Tensor y) { return -y; }, t);
    EXPECT_EQ(chosen.sharding(), rows);
    Tensor last = while_loop([](Tensor c) { return less(sum(c), 1000); },
                             [](Tensor c) { return c + c; }, chosen);
    EXPECT_EQ(last.sharding(), rows);
    return last;
  });
  // 32 ... 528, doubled once.
  EXPECT_EQ(f(1, x).to_vector<float>(), ((counting({4, 8}) + 1) * 2).to_vector<float>());
}

TEST_F(ControlFlow, ExplicitAxesThatDifferAreErrorsAtTheUsersLine) {
  Mesh mesh = explicit_axes();
  Tensor x = mark_sharding(counting({4, 8}), mesh, P("data", none));
  auto reshard = [&](Tensor t) { return sharding_constraint(t, Sharding(mesh, P(none, "model"))); };
  auto message = [](auto run) {
    try {
      run();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using testing::AllOf;
  using testing::HasSubstr;
  auto tells = AllOf(testing::StartsWith("control_flow_test.cc:"), HasSubstr("P(\"data\", none)"),
                     HasSubstr("P(none, \"model\")"), HasSubstr("note: "));
  EXPECT_THAT(message([&] {
                fori_loop(
                    0, 3, [&](Tensor, Tensor c) { return reshard(c); }, x);
              }),
              AllOf(tells, HasSubstr("carry")));
  EXPECT_THAT(message([&] { while_loop([](Tensor c) { return less(sum(c), 9); }, reshard, x); }),
              AllOf(tells, HasSubstr("carry")));
  EXPECT_THAT(message([&] {
                cond(
                    true, [](Tensor t) { return t + 1; }, reshard, x);
              }),
              AllOf(tells, HasSubstr("result 0")));
}

// ---- Advice.

TEST_F(ControlFlow, APlainLoopOverEqualLayersIsToldOf) {
  auto loss = [](const Tensor& h, const Layer& layer) { return tanh(h * layer.w + layer.b); };
  auto model = [&](const std::vector<Layer>& all, Tensor h) {
    for (const Layer& layer : all) h = sin(loss(h, layer));
    return sum(h);
  };
  std::vector<Layer> layers;
  for (float v = 0; v < 12; ++v) layers.push_back({counting({4}, v), counting({4}, -v)});
  auto step = jit(value_and_grad(model));
  step(layers, ones({4}));
  ASSERT_EQ(step.stats().rolling.size(), 1u);
  const RollingAdvice advice = step.stats().rolling[0];
  EXPECT_EQ(advice.layers, 12u);
  EXPECT_EQ(advice.parameters_per_layer, 2u);
  EXPECT_THAT(advice.to_string(), testing::HasSubstr("control_flow_test.cc:"));
  EXPECT_THAT(explain(step).to_string(), testing::HasSubstr(advice.to_string()));
  // Layers that are slices of one argument.
  auto sliced = jit(value_and_grad([&](const Layer& all, const Tensor& h) {
    std::vector<Layer> each;
    for (std::int64_t i = 0; i < 12; ++i) each.push_back(slice_structure(all, i));
    return model(each, h);
  }));
  sliced(stack_structures(layers), ones({4}));
  ASSERT_EQ(sliced.stats().rolling.size(), 1u);
  EXPECT_EQ(sliced.stats().rolling[0].layers, 12u);
  EXPECT_LT(sliced.stats().rolling[0].nodes_after, sliced.stats().rolling[0].nodes_before / 2);
}

TEST_F(ControlFlow, UnequalLayersAreNotToldOf) {
  auto step = jit([](const std::vector<Tensor>& layers, Tensor h) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      h = tanh(h * layers[i] + static_cast<double>(i)) * static_cast<double>(i + 1);
    return h;
  });
  step(std::vector<Tensor>(12, ones({4})), ones({4}));
  EXPECT_TRUE(step.stats().rolling.empty());
  auto rolled = jit([](const Tensor& all, const Tensor& x) {
    return repeat(all, x, [](Tensor w, Tensor h) { return sin(tanh(h * w + 1)); });
  });
  rolled(ones({12, 4}), ones({4}));
  EXPECT_TRUE(rolled.stats().rolling.empty());
}

// Each microbatch takes rows from every device's own part, so no batch data moves.
TEST_F(ControlFlow, PartsOfAShardedBatchStayWhereTheyAre) {
  Mesh mesh({{"data", 8}});
  auto loss = [](const Tensor& w, const Tensor& rows) { return mean(square(matmul(rows, w))); };
  auto step = jit(optim::accumulated(value_and_grad(loss), 4));
  Tensor w = counting({6, 2}) / 8, rows = sin(counting({64, 6}));
  auto [value, gradient] = step(mark_sharding(w, mesh, P()), mark_sharding(rows, mesh, P("data")));
  auto [expected, wanted] = value_and_grad(loss)(w, rows);
  EXPECT_NEAR(value.item<float>(), expected.item<float>(), 1e-5);
  EXPECT_THAT(gradient.to_vector<float>(),
              testing::Pointwise(testing::FloatNear(1e-5f), wanted.to_vector<float>()));
  ProgramReport report = explain(step);
  for (const Collective& each : report.collectives())
    EXPECT_EQ(each.kind, CollectiveKind::kAllReduce) << report.to_string();
  EXPECT_FALSE(report.collectives().empty());
}

// A loop inside a manual region, and a manual region inside a loop.
TEST_F(ControlFlow, ManualRegions) {
  Mesh mesh({{"x", 4}});
  std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  Tensor x = from_host(values, {8});
  auto shift = [](const Tensor& t) {
    return collective_permute(t, "x", {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  };
  auto inside = manual(mesh, P("x"), P("x"), [&](const Tensor& local) {
    return fori_loop(
        0, 3, [&](Tensor, Tensor c) { return shift(c) + local; }, local * 0);
  });
  auto step = manual(mesh, {P("x"), P("x")}, P("x"),
                     [&](const Tensor& c, const Tensor& local) { return shift(c) + local; });
  auto outside = [&](const Tensor& t) {
    return fori_loop(
        0, 3, [&](Tensor, Tensor c) { return step(c, t); }, t * 0);
  };
  // Three shifted copies, added.
  std::vector<float> expected;
  for (std::size_t i = 0; i < 8; ++i)
    expected.push_back(values[i] + values[(i + 6) % 8] + values[(i + 4) % 8]);
  EXPECT_EQ(jit(inside)(x).to_vector<float>(), expected);
  EXPECT_EQ(jit(outside)(x).to_vector<float>(), expected);
  // The derivative of a weighted sum: each element contributes three times.
  Tensor weights = from_host(std::vector<float>{1, 0, 0, 0, 2, 0, 0, 0}, {8});
  auto loss = [&](auto f) { return [=](const Tensor& t) { return sum(f(t) * weights); }; };
  std::vector<float> wanted{3, 0, 2, 0, 3, 0, 1, 0};
  wanted = {1, 0, 0, 0, 0, 0, 0, 0};
  std::vector<float> w{1, 0, 0, 0, 2, 0, 0, 0};
  for (std::size_t i = 0; i < 8; ++i) wanted[i] = w[i] + w[(i + 2) % 8] + w[(i + 4) % 8];
  EXPECT_EQ(jit(grad(loss(inside)))(x).to_vector<float>(), wanted);
  EXPECT_EQ(jit(grad(loss(outside)))(x).to_vector<float>(), wanted);
}

}  // namespace
}  // namespace meshard
