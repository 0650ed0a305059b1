// Manual functions inside manual functions, on real devices.
#include <gmock/gmock.h>

#include <functional>

#include "meshard/explain/explain.h"
#include "meshard/ops/composite/manual.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using NestedManual = OnDevices;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Function = std::function<Tensor(const Tensor&)>;

const Mesh& cube() {
  static const Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  return mesh;
}

// `f` on rows split by "x" in the outer function, and columns split by "y" in the inner one.
template <class F>
Function rows_then_columns(const Mesh& mesh, F f) {
  auto inner = manual(mesh, P(none, "y"), P(none, "y"), f, {.axes = {"y"}});
  return manual(mesh, P("x"), P("x"),
                [inner](const Tensor& rows) { return inner(rows * 2) + rows; }, {.axes = {"x"}});
}

TEST_F(NestedManual, TheInnerFunctionSeesAPartOfThePart) {
  auto f = rows_then_columns(grid(), [](const Tensor& part) {
    EXPECT_EQ(part.shape(), (Shape{2, 2}));
    EXPECT_EQ(manual_axes(part.value())->to_string(),
              R"(manual over {"y"} inside {"x"} of mesh<x=2, y=4>)");
    return part * part;
  });
  std::vector<float> expected = numbers(32);
  for (float& v : expected) v = 4 * v * v + v;
  for (const Function& run : {f, Function(jit(f))}) {
    Tensor y = run(counting({4, 8}));
    EXPECT_EQ(y.shape(), (Shape{4, 8}));
    EXPECT_THAT(y.to_vector<float>(), ElementsAreArray(expected));
  }
}

TEST_F(NestedManual, CollectivesNameTheAxesOfBoth) {
  // The numbers 0 to 7, one on each device: (x, y) holds 4 x + y.
  auto over = [](CollectiveAxes axes) {
    auto inner = manual(grid(), P(none, "y"), P(none, "y"),
                        [axes](const Tensor& part) {
                          return vary(all_reduce(part, axes), {"x", "y"});
                        },
                        {.axes = {"y"}});
    Function f = manual(grid(), P("x"), P("x"), inner, {.axes = {"x"}});
    EXPECT_EQ(f(counting({2, 4})).to_vector<float>(), jit(f)(counting({2, 4})).to_vector<float>());
    return f(counting({2, 4})).to_vector<float>();
  };
  EXPECT_THAT(over("x"), ElementsAre(4, 6, 8, 10, 4, 6, 8, 10));
  EXPECT_THAT(over("y"), ElementsAre(6, 6, 6, 6, 22, 22, 22, 22));
  EXPECT_THAT(over({"x", "y"}), ElementsAre(28, 28, 28, 28, 28, 28, 28, 28));
  auto shifted = [](AxisList axes) {
    auto inner =
        manual(grid(), P(none, "y"), P(none, "y"),
               [axes](const Tensor& part) { return ring_shift(part, axes); }, {.axes = {"y"}});
    return manual(grid(), P("x"), P("x"), inner, {.axes = {"x"}})(counting({2, 4}))
        .to_vector<float>();
  };
  EXPECT_THAT(shifted({"x"}), ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_THAT(shifted({"y"}), ElementsAre(3, 0, 1, 2, 7, 4, 5, 6));
  EXPECT_THAT(shifted({"x", "y"}), ElementsAre(7, 0, 1, 2, 3, 4, 5, 6));
}

TEST_F(NestedManual, GatherScatterAndExchange) {
  auto run = [](auto f) {
    auto inner = manual(grid(), P(none, "y"), P(none, "y"), f, {.axes = {"y"}});
    return manual(grid(), P("x"), P("x"), inner, {.axes = {"x"}})(counting({4, 8}));
  };
  // Over the outer axis: each device gathers all rows of its columns and keeps its part of the sum.
  EXPECT_THAT(run([](const Tensor& part) {
                return reduce_scatter(all_gather(part, "x", 0), "x", 0);
              }).to_vector<float>(),
              ElementsAreArray(numbers(32, 0, 2)));
  EXPECT_THAT(run([](const Tensor& part) {
                return all_to_all(all_to_all(part, "x", 1, 0), "x", 0, 1);
              }).to_vector<float>(),
              ElementsAreArray(numbers(32)));
  auto whole = manual(grid(), P("x"), P(),
                      [](const Tensor& rows) {
                        return manual(grid(), P(none, "y"), P(),
                                      [](const Tensor& part) {
                                        Tensor columns = all_gather_invariant(part, "y", 1);
                                        return all_gather_invariant(columns, "x", 0);
                                      },
                                      {.axes = {"y"}})(rows);
                      },
                      {.axes = {"x"}});
  EXPECT_THAT(whole(counting({4, 8})).to_vector<float>(), ElementsAreArray(numbers(32)));
}

TEST_F(NestedManual, MembersAreNumberedAlongTheAxesOfBoth) {
  auto index = [](AxisList axes) {
    auto inner = manual(grid(), SpecList{}, P(none, "y"),
                        [axes] {
                          return reshape(axis_index(axes), {1, 1});
                        },
                        {.axes = {"y"}});
    Tensor all = manual(grid(), SpecList{}, P("x"), inner, {.axes = {"x"}})();
    return all.to_vector<std::int32_t>();
  };
  EXPECT_THAT(index({"x"}), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(index({"y"}), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(index({"x", "y"}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(index({"y", "x"}), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(index({AxisRef("y", 2, 2), "x"}), ElementsAre(0, 2, 0, 2, 1, 3, 1, 3));
}

// ---- Derivatives: equal to those of the function written without a mesh.

// Uses the collectives of both functions, and a value of the outer one inside the inner one.
Function by_hand() {
  return manual(grid(), P("x"), P("x"),
                [](const Tensor& rows) {
                  Tensor scale = cos(sum(rows));
                  auto inner =
                      manual(grid(), P(none, "y"), P(none, "y"),
                             [scale](const Tensor& part) {
                               Tensor all = all_reduce(sum(sin(part)), {"x", "y"});
                               Tensor row = all_reduce(sum(part * part), "y");
                               return tanh(part) * scale + exp(part * 0.1) * all * 0.1 + row * part;
                             },
                             {.axes = {"y"}});
                  return inner(rows) * rows;
                },
                {.axes = {"x"}});
}
Tensor whole(const Tensor& x) {
  Tensor halves = reshape(x, {2, x.shape()[0] / 2, x.shape()[1]});
  Tensor scale = cos(sum(halves, {1, 2}, true)), all = sum(sin(x));
  Tensor row = sum(halves * halves, {1, 2}, true);
  Tensor y = tanh(halves) * scale + exp(halves * 0.1) * all * 0.1 + row * halves;
  return reshape(y * halves, x.shape());
}

void expect_like_whole(const std::function<Tensor(const Function&)>& of, const char* what) {
  EXPECT_THAT(of(by_hand()).to_vector<double>(),
              Pointwise(testing::DoubleNear(1e-9), of(whole).to_vector<double>()))
      << what;
}

TEST_F(NestedManual, DerivativesAreThoseOfTheWhole) {
  Tensor x = sin(astype(counting({4, 4}), DType::f64)) * 0.2;
  Tensor w = cos(astype(counting({4, 4}), DType::f64));
  auto loss = [&](const Function& f) { return [f, w](const Tensor& t) { return sum(f(t) * w); }; };
  expect_like_whole([&](const Function& f) { return f(x); }, "values");
  expect_like_whole([&](const Function& f) { return jit(f)(x); }, "jit");
  expect_like_whole([&](const Function& f) { return grad(loss(f))(x); }, "grad");
  expect_like_whole([&](const Function& f) { return jit(grad(loss(f)))(x); }, "jit of grad");
  expect_like_whole([&](const Function& f) { return jvp(f, x, w).second; }, "jvp");
  expect_like_whole([&](const Function& f) { return std::get<0>(vjp(f, x).second(w)); }, "vjp");
  expect_like_whole([&](const Function& f) { return hvp(loss(f), x, w); }, "hvp");
  expect_like_whole([&](const Function& f) { return grad(loss(checkpoint(f)))(x); }, "checkpoint");
  expect_like_whole([&](const Function& f) { return vmap(f)(stack({x, w})); }, "vmap");
  expect_like_whole(
      [&](const Function& f) {
        return vmap(grad(loss(f)))(stack({x, w}));
      },
      "vmap of grad");
  expect_like_whole(
      [&](const Function& f) {
        return grad(loss(vmap(f)))(stack({x, w}));
      },
      "grad of vmap");
}

TEST_F(NestedManual, DerivativesInBodies) {
  using Body = std::function<Tensor(const Function&, const Tensor&)>;
  const std::pair<const char*, Body> bodies[] = {
      {"repeat", [](const Function& f, const Tensor& x) { return repeat(2, x, f) * 1; }},
      {"scan",
       [](const Function& f, const Tensor& x) {
         auto step = [&](Tensor c, Tensor row) { return std::pair(f(c * row), f(row)); };
         auto [last, each] = scan(step, x, stack({x, x * 0.5}));
         return last + sum(each, 0);
       }},
      {"cond",
       [](const Function& f, const Tensor& x) {
         return cond(
             sum(x) > 100, [](const Tensor& t) { return t; }, f, x);
       }},
      {"checkpoint", [](const Function& f, const Tensor& x) { return checkpoint(f)(x); }}};
  Tensor x = sin(astype(counting({4, 4}), DType::f64)) * 0.2;
  Tensor w = cos(astype(counting({4, 4}), DType::f64));
  for (const auto& each : bodies) {
    const Body& body = each.second;
    expect_like_whole(
        [&](const Function& f) {
          auto first = grad([&](const Tensor& t) { return sum(body(f, t) * w); });
          auto second = grad([&](const Tensor& t) { return sum(square(first(t))); });
          return stack({first(x), second(x)});
        },
        each.first);
  }
}

// A region in the body of a loop or branch in a region, and another region inside that one.
TEST_F(NestedManual, LoopsAndBranchesBetweenTheFunctions) {
  auto nested = [](bool sharded) {
    return [sharded](const Tensor& x) {
      Function part_of_part = [sharded](const Tensor& part) {
        auto step = [sharded](const Tensor& c) {
          Tensor total = sum(c * c);
          if (sharded) total = all_reduce(total, {"x", "y"});
          return tanh(c) * total;
        };
        return cond(
            zeros({}) < 1, [&](const Tensor& t) { return repeat(2, t, step); },
            [](const Tensor& t) { return t; }, part);
      };
      Function inner = part_of_part;
      if (sharded) inner = manual(grid(), P("y"), P("y"), part_of_part, {.axes = {"y"}});
      Function rows = [inner](const Tensor& part) {
        auto step = [&](Tensor c, Tensor factor) {
          Tensor next = inner(c * factor) + c;
          return std::pair(next, inner(next));
        };
        auto [last, each] = scan(step, part, astype(counting({3}, 1), DType::f64) * 0.1);
        return cond(
            zeros({}) < 1, [&](const Tensor& t) { return checkpoint(inner)(t) * 2; },
            [](const Tensor& t) { return t; }, last + sum(each, 0));
      };
      return sharded ? manual(grid(), P("x"), P("x"), rows, {.axes = {"x"}})(x) : rows(x);
    };
  };
  Tensor x = sin(astype(counting({8}), DType::f64)) * 0.2, w = x * 0.5;
  auto all = [&](const Function& f) {
    auto first = grad([&](const Tensor& t) { return sum(f(t) * sin(t)); });
    auto second = grad([&](const Tensor& t) { return sum(square(first(t))); });
    return stack({f(x), jit(f)(x), first(x), jit(first)(x), second(x),
                  take(vmap(first)(stack({x, w})), 1, 0)})
        .to_vector<double>();
  };
  EXPECT_THAT(all(nested(true)), Pointwise(testing::DoubleNear(1e-9), all(nested(false))));
}

TEST_F(NestedManual, TheOuterFunctionDifferentiatesTheInnerOne) {
  Tensor x = sin(counting({4, 8})) * 0.2f;
  auto loss_of = [](const Tensor& t) { return sum(tanh(t) * t * t); };
  auto step = manual(grid(), P("x"), P("x"),
                     [&](const Tensor& rows) {
                       auto loss = manual(
                           grid(), P(none, "y"), P(),
                           [&](const Tensor& part) { return all_reduce(loss_of(part), "y"); },
                           {.axes = {"y"}});
                       return grad(loss)(rows);
                     },
                     {.axes = {"x"}});
  auto inside = rows_then_columns(grid(), [&](const Tensor& part) { return grad(loss_of)(part); });
  std::vector<float> expected = grad(loss_of)(x).to_vector<float>();
  EXPECT_THAT(step(x).to_vector<float>(), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THAT(jit(step)(x).to_vector<float>(), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THAT((inside(x / 2) - x / 2).to_vector<float>(), Pointwise(FloatNear(1e-5f), expected));
}

TEST_F(NestedManual, ACapturedNumberOfTheOuterFunctionIsDifferentiated) {
  Tensor x = counting({2, 4}, 1);
  auto f = manual(
      grid(), P("x"), P(),
      [](const Tensor& rows) {
        auto loss = [&](const Tensor& scale) {
          return manual(grid(), P(none, "y"), P(),
                        [scale](const Tensor& part) { return all_reduce(sum(part * scale), "y"); },
                        {.axes = {"y"}})(rows);
        };
        // The sum of each row, summed over the rows; for a number that both rows share, the sum of
        // all rows.
        return std::pair(all_reduce(grad(loss)(vary(ones({}), "x")), "x"),
                         grad([&](const Tensor& s) { return all_reduce(loss(s), "x"); })(
                             vary(ones({}), AxisList())));
      },
      {.axes = {"x"}});
  auto [own, shared] = f(x);
  EXPECT_EQ(own.item<float>(), 36);
  EXPECT_EQ(shared.item<float>(), 36);
}

// ---- Regions.

TEST_F(NestedManual, ThreeLevels) {
  auto level = [](const char* axis, auto f) {
    return manual(cube(), P(axis), P(axis), f, {.axes = {axis}});
  };
  Function f = level("x", [&](const Tensor& a) {
    return level("y",
                 [&](const Tensor& b) {
                   return level("z",
                                [&](const Tensor& c) {
                                  EXPECT_EQ(c.shape(), (Shape{2}));
                                  return c * all_reduce(sum(c), {"x", "z"}) +
                                         axis_index({"z", "y", "x"});
                                })(b * 2) +
                          sum(b);
                 })(a) *
           3;
  });
  auto expected = [](std::vector<float> v) {
    std::vector<float> out(16);
    for (std::size_t i = 0; i < 16; ++i) {
      std::size_t x = i / 8, y = i / 4 % 2, z = i / 2 % 2;
      float total = 0, own = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        if (k / 4 % 2 == y) total += 2 * v[k];
        if (k / 4 == i / 4) own += v[k];
      }
      out[i] = 3 * (2 * v[i] * total + static_cast<float>(4 * z + 2 * y + x) + own);
    }
    return out;
  };
  Tensor x = counting({16});
  EXPECT_THAT(f(x).to_vector<float>(), ElementsAreArray(expected(numbers(16))));
  EXPECT_THAT(jit(f)(x).to_vector<float>(), ElementsAreArray(expected(numbers(16))));
  // d/dv sum(f) by differences; exact, because the function is quadratic.
  std::vector<float> slopes;
  for (std::size_t i = 0; i < 16; ++i) {
    float change = 0;
    for (float sign : {1.0f, -1.0f}) {
      std::vector<float> v = numbers(16);
      v[i] += sign;
      for (float value : expected(v)) change += sign * value;
    }
    slopes.push_back(change / 2);
  }
  auto gradient = grad([&](const Tensor& t) { return sum(f(t)); });
  EXPECT_THAT(gradient(x).to_vector<float>(), ElementsAreArray(slopes));
  EXPECT_THAT(jit(gradient)(x).to_vector<float>(), ElementsAreArray(slopes));
  EXPECT_THAT(grad([&](const Tensor& t) { return sum(repeat(1, t, f)); })(x).to_vector<float>(),
              ElementsAreArray(slopes));
}

TEST_F(NestedManual, PaddingIsZeroAndCutOff) {
  // 7 rows as 4 + 3; over 2 parts each, these are 2 + 2 and 2 + 1 (+ 1 row of zeros).
  auto inner = manual(grid(), P("y"), P("y"), [](const Tensor& part) { return part + 1; },
                      {.axes = {"y"}, .out_shapes = {{4}}});
  auto f = manual(grid(), P("x"), P("x"),
                  [&](const Tensor& rows) {
                    EXPECT_EQ(rows.shape(), (Shape{4}));
                    return inner(rows) * 2;
                  },
                  {.axes = {"x"}, .out_shapes = {{7}}, .pad = 0});
  EXPECT_THAT(f(counting({7})).to_vector<float>(), ElementsAreArray(numbers(7, 2, 2)));
  auto uneven = manual(grid(), P("y"), P("y"), [](const Tensor& part) { return part + 1; },
                       {.axes = {"y"}, .out_shapes = {{3}}, .pad = 0});
  auto g = manual(grid(), P("x"), P("x"), [&](const Tensor& rows) { return uneven(rows); },
                  {.axes = {"x"}, .out_shapes = {{5}}, .pad = 0});
  EXPECT_THAT(g(counting({5})).to_vector<float>(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(
      grad([&](const Tensor& t) { return sum(g(t) * t); })(counting({5})).to_vector<float>(),
      ElementsAreArray(numbers(5, 1, 2)));
}

TEST_F(NestedManual, TheThirdAxisIsLeftToTheCompiler) {
  Tensor x = mark_sharding(counting({4, 8}), cube(), P("x", axes("y", "z")));
  auto inner = manual(cube(), P(none, "y"), P(none, "y"),
                      [](const Tensor& part) {
                        Tensor laid_out =
                            sharding_constraint(tanh(part / 32), Sharding(cube(), P(none, "z")));
                        return laid_out * all_reduce(sum(part), {"x", "y"});
                      },
                      {.axes = {"y"}});
  auto f = manual(cube(), P("x"), P("x"), inner, {.axes = {"x"}});
  std::vector<float> expected = (tanh(counting({4, 8}) / 32) * 496).to_vector<float>();
  EXPECT_THAT(f(x).to_vector<float>(), Pointwise(FloatNear(1e-3f), expected));
  EXPECT_THAT(jit(f)(x).to_vector<float>(), Pointwise(FloatNear(1e-3f), expected));
}

TEST_F(NestedManual, LocalValuesGoFromOneRegionToALaterOne) {
  // The second call uses the result of the first call, and a part and a number from inside it.
  auto f = manual(grid(), P("x"), P("x"),
                  [](const Tensor& rows) {
                    Tensor part, number;
                    auto first = manual(grid(), P("y"), P("y"),
                                        [&](const Tensor& t) {
                                          part = t, number = sum(t);
                                          return t * 2;
                                        },
                                        {.axes = {"y"}})(rows);
                    return manual(grid(), P("y"), P("y"),
                                  [&](const Tensor& t) { return t * t + part + number; },
                                  {.axes = {"y"}})(first * 1);
                  },
                  {.axes = {"x"}});
  std::vector<float> expected;
  for (int i = 0; i < 16; ++i)
    expected.push_back(static_cast<float>(4 * i * i + i + (i / 2) * 4 + 1));
  EXPECT_THAT(f(counting({16})).to_vector<float>(), ElementsAreArray(expected));
  EXPECT_THAT(jit(f)(counting({16})).to_vector<float>(), ElementsAreArray(expected));
}

TEST_F(NestedManual, OnAnyDevicesWithDonation) {
  auto f = [](const Mesh& mesh) {
    return rows_then_columns(mesh, [](const Tensor& part) {
      return ring_shift(part, {"x", "y"}) + axis_index({"y", "x"}) * 100;
    });
  };
  // (x, y) receives 2 (2 x + y - 1) from its neighbor, and adds 100 (2 y + x) and its own 2 x + y.
  auto expected = ElementsAre(6 + 0 + 0, 0 + 200 + 1, 2 + 100 + 2, 4 + 300 + 3);
  for (const Mesh& mesh : {Mesh({{"x", 2}, {"y", 2}}), Mesh({{"x", 2}, {"y", 2}}, {7, 2, 5, 4})}) {
    EXPECT_THAT(f(mesh)(counting({2, 2})).to_vector<float>(), expected) << mesh.to_string();
    Tensor given = mark_sharding(counting({2, 2}), mesh, P("x", "y"));
    EXPECT_THAT(jit(f(mesh), {.donate = {0}})(given).to_vector<float>(), expected)
        << mesh.to_string();
  }
  Mesh alone({{"x", 1}, {"y", 1}}, {3});
  EXPECT_THAT(f(alone)(counting({1, 2}, 1)).to_vector<float>(), ElementsAre(3, 6));
  Mesh thin({{"x", 2}, {"y", 1}});
  EXPECT_THAT(f(thin)(counting({2, 1}, 1)).to_vector<float>(), ElementsAre(4 + 1, 2 + 100 + 2));
}

TEST_F(NestedManual, TheReportNamesTheUsersLineAndTheAxes) {
  unsigned line = 0;
  auto inner = manual(grid(), P("y"), P(),
                      [&](const Tensor& part) {
                        line = __LINE__ + 1;
                        return all_reduce(part, {"x", "y"});
                      },
                      {.axes = {"y"}});
  auto f = jit(manual(grid(), P("x"), P(), inner, {.axes = {"x"}}));
  EXPECT_EQ(f(counting({8})).item<float>(), 28);
  std::string report = explain(f).to_string();
  EXPECT_THAT(report, HasSubstr(cat("nested_manual_test.cc:", line)));
  EXPECT_THAT(report, HasSubstr(R"({"x", "y"})"));
}

// A loop of the outer function calls the inner one, which has a loop of its own.
TEST_F(NestedManual, AxisIndicesInsideLoopsBetweenTheFunctions) {
  auto index = [](const Tensor& t) { return t + axis_index({"y", "x"}); };
  auto inner = manual(grid(), P(none, "y"), P(none, "y"),
                      [&](const Tensor& t) { return repeat(2, t, index); }, {.axes = {"y"}});
  auto outer = manual(grid(), P("x"), P("x"), [&](const Tensor& t) { return repeat(3, t, inner); },
                      {.axes = {"x"}});
  EXPECT_THAT(outer(zeros({2, 4}, DType::i32)).to_vector<std::int32_t>(),
              ElementsAre(0, 12, 24, 36, 6, 18, 30, 42));
}

}  // namespace
}  // namespace meshard
