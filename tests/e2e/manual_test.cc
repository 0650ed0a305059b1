// Manual functions and their collectives on real devices.
#include "meshard/ops/composite/manual.h"

#include <gmock/gmock.h>

#include <functional>

#include "meshard/explain/explain.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Manual = OnDevices;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

const Mesh& ring() {
  static const Mesh mesh({{"x", 4}});
  return mesh;
}

TEST_F(Manual, EachDeviceSeesItsPart) {
  auto f = manual(ring(), P("x"), P("x"), [](const Tensor& part) {
    EXPECT_EQ(part.shape(), (Shape{2, 3}));
    return part * (axis_index("x") + 1);
  });
  Tensor y = f(counting({8, 3}));
  EXPECT_EQ(y.shape(), (Shape{8, 3}));
  std::vector<float> expected = numbers(24);
  for (std::size_t i = 0; i < 24; ++i) expected[i] *= static_cast<float>(i / 6 + 1);
  EXPECT_THAT(y.to_vector<float>(), ElementsAreArray(expected));
  ASSERT_TRUE(y.sharding());
  EXPECT_TRUE(y.sharding()->is_equivalent_to(Sharding(ring(), P("x"), 2), 2));
}

TEST_F(Manual, EveryKindOfReduction) {
  Tensor x = from_host(std::vector<float>{3, -2, 5, 4}, {4});
  auto over = [&](ReduceKind kind) {
    return manual(ring(), P("x"), P(),
                  [kind](const Tensor& part) { return all_reduce(part, "x", kind); })(x)
        .item<float>();
  };
  EXPECT_EQ(over(ReduceKind::kSum), 10);
  EXPECT_EQ(over(ReduceKind::kProd), -120);
  EXPECT_EQ(over(ReduceKind::kMax), 5);
  EXPECT_EQ(over(ReduceKind::kMin), -2);
  Tensor any = manual(ring(), P("x"), P(), [](const Tensor& part) {
    return all_reduce(part > 4, "x", ReduceKind::kMax);
  })(x);
  EXPECT_TRUE(any.item<bool>());
}

TEST_F(Manual, ARingOfPermutesIsAnAllReduce) {
  auto by_hand = manual(ring(), P("x"), P("x"), [](Tensor part) {
    Tensor sum = part;
    for (int step = 1; step < 4; ++step) {
      part = ring_shift(part, "x");
      sum = sum + part;
    }
    return sum;
  });
  auto whole = manual(ring(), P("x"), P("x"),
                      [](const Tensor& part) { return vary(all_reduce(part, "x"), "x"); });
  Tensor x = counting({8, 2});
  EXPECT_EQ(by_hand(x).to_vector<float>(), whole(x).to_vector<float>());
  EXPECT_EQ(jit(by_hand)(x).to_vector<float>(), whole(x).to_vector<float>());
}

TEST_F(Manual, GatherScatterAndExchange) {
  Tensor x = counting({8, 4});
  auto gathered = manual(ring(), P("x"), P(),
                         [](const Tensor& part) { return all_gather_invariant(part, "x", 0); })(x);
  EXPECT_THAT(gathered.to_vector<float>(), ElementsAreArray(numbers(32)));
  // Each device gathers the whole array and returns a quarter of the sum: four times the rows.
  auto scattered = manual(ring(), P("x"), P("x"), [](const Tensor& part) {
    return reduce_scatter(all_gather(part, "x", 0), "x", 0);
  })(x);
  EXPECT_THAT(scattered.to_vector<float>(), ElementsAreArray(numbers(32, 0, 4)));
  // From split rows to split columns, and back.
  auto columns = manual(ring(), P("x"), P(none, "x"), [](const Tensor& part) {
    EXPECT_EQ(part.shape(), (Shape{2, 4}));
    Tensor exchanged = all_to_all(part, "x", 1, 0);
    EXPECT_EQ(exchanged.shape(), (Shape{8, 1}));
    return exchanged;
  })(x);
  EXPECT_THAT(columns.to_vector<float>(), ElementsAreArray(numbers(32)));
  auto there_and_back = manual(ring(), P("x"), P("x"), [](const Tensor& part) {
    return all_to_all(all_to_all(part, "x", 1, 0), "x", 0, 1);
  })(x);
  EXPECT_THAT(there_and_back.to_vector<float>(), ElementsAreArray(numbers(32)));
  auto shifted = manual(ring(), P("x"), P("x"), [](const Tensor& part) {
    return collective_permute(part, "x", {{0, 1}, {1, 2}});
  })(counting({4}, 1));
  EXPECT_THAT(shifted.to_vector<float>(), ElementsAre(0, 1, 2, 0));
}

TEST_F(Manual, MembersFollowTheOrderOfTheAxes) {
  auto index = [](AxisList axes) {
    return manual(grid(), SpecList{}, P("x", "y"),
                  [axes] {
                    return reshape(axis_index(axes), {1, 1});
                  })()
        .to_vector<std::int32_t>();
  };
  EXPECT_THAT(index({"x", "y"}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(index({"y", "x"}), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(index({AxisRef("y", 2, 2)}), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  auto gathered = manual(grid(), P("x", "y"), P(), [](const Tensor& part) {
    return all_gather_invariant(part, {"y", "x"}, 0);
  })(counting({2, 4}));
  EXPECT_THAT(gathered.to_vector<float>(), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  // Over the minor half of "y": pairs of neighbors.
  auto pairs = manual(grid(), P("x", "y"), P("x", "y"), [](const Tensor& part) {
    return all_reduce(part, AxisRef("y", 2, 2));
  })(counting({2, 4}));
  EXPECT_THAT(pairs.to_vector<float>(), ElementsAre(1, 1, 5, 5, 9, 9, 13, 13));
}

// ---- Derivatives: equal to those of the function written without a mesh.

Tensor squared_loss(const Tensor& w, const Tensor& x) { return mean(square(tanh(matmul(x, w)))); }

TEST_F(Manual, ADataParallelStepByHandIsJits) {
  Tensor w = counting({4, 3}, -6) / 12, x = counting({8, 4}, -16) / 16;
  auto expected = jit(value_and_grad(squared_loss))(w, x);
  // By hand: each device differentiates its part, and the gradients are averaged. The weight is
  // unvarying, so that its gradient is already summed.
  auto step = manual(ring(), {P(), P("x")}, P(), [](const Tensor& weight, const Tensor& part) {
    auto [loss, gradient] = value_and_grad(squared_loss)(weight, part);
    return std::pair(all_reduce(loss, "x") / 4, gradient / 4);
  });
  for (const auto& [loss, gradient] : {step(w, x), jit(step)(w, x)}) {
    EXPECT_NEAR(loss.item<float>(), expected.first.item<float>(), 1e-6);
    EXPECT_THAT(gradient.to_vector<float>(),
                Pointwise(FloatNear(1e-6f), expected.second.to_vector<float>()));
  }
}

TEST_F(Manual, GradientsPassThrough) {
  Tensor w = counting({4, 4}, -8) / 12, x = counting({8, 4}, -16) / 16;
  auto check = [&](auto f) {
    auto expected = value_and_grad<0, 1>(squared_loss)(w, x);
    auto got = jit(value_and_grad<0, 1>(f))(w, x);
    EXPECT_NEAR(got.first.template item<float>(), expected.first.template item<float>(), 1e-6);
    EXPECT_THAT(
        std::get<0>(got.second).template to_vector<float>(),
        Pointwise(FloatNear(1e-6f), std::get<0>(expected.second).template to_vector<float>()));
    EXPECT_THAT(
        std::get<1>(got.second).template to_vector<float>(),
        Pointwise(FloatNear(1e-6f), std::get<1>(expected.second).template to_vector<float>()));
  };
  {
    SCOPED_TRACE("batch split, weight whole");
    check(manual(ring(), {P(), P("x")}, P(), [](const Tensor& weight, const Tensor& part) {
      return all_reduce(squared_loss(weight, part), "x") / 4;
    }));
  }
  {
    SCOPED_TRACE("weight gathered where it is used");
    check(manual(ring(), {P("x"), P("x")}, P(), [](const Tensor& weight, const Tensor& part) {
      return all_reduce(squared_loss(all_gather(weight, "x", 0), part), "x") / 4;
    }));
  }
  {
    SCOPED_TRACE("weight gathered, equal everywhere");
    check(manual(ring(), {P("x"), P("x")}, P(), [](const Tensor& weight, const Tensor& part) {
      return all_reduce(squared_loss(all_gather_invariant(weight, "x", 0), part), "x") / 4;
    }));
  }
  {
    SCOPED_TRACE("contraction split");
    check(manual(ring(), {P("x"), P(none, "x")}, P(), [](const Tensor& weight, const Tensor& part) {
      return mean(square(tanh(all_reduce(matmul(part, weight), "x"))));
    }));
  }
  {
    SCOPED_TRACE("contraction split, rows scattered");
    check(manual(ring(), {P("x"), P(none, "x")}, P(), [](const Tensor& weight, const Tensor& part) {
      Tensor rows = reduce_scatter(matmul(part, weight), "x", 0);
      return all_reduce(mean(square(tanh(rows))), "x") / 4;
    }));
  }
  {
    SCOPED_TRACE("columns exchanged for rows");
    check(manual(ring(), {P(), P(none, "x")}, P(), [](const Tensor& weight, const Tensor& part) {
      return all_reduce(squared_loss(weight, all_to_all(part, "x", 0, 1)), "x") / 4;
    }));
  }
  {
    SCOPED_TRACE("weights around the ring");
    check(manual(ring(), {P(none, "x"), P()}, P(), [](Tensor weight, const Tensor& whole) {
      Tensor sum = zeros({});
      for (int step = 0; step < 4; ++step) {
        sum = sum + mean(square(tanh(matmul(whole, weight))));
        weight = ring_shift(weight, "x");
      }
      return all_reduce(sum, "x") / 16;
    }));
  }
}

TEST_F(Manual, SecondDerivativesToo) {
  Tensor x = counting({4}, 1);
  auto cubed = [](const Tensor& t) { return sum(t * t * t); };
  auto by_hand = manual(ring(), P("x"), P(), [](const Tensor& part) {
    return all_reduce(sum(part * part * part), "x");
  });
  auto second = [&](auto f) {
    return grad([f](const Tensor& t) { return sum(square(grad(f)(t))); })(x)
        .template to_vector<float>();
  };
  EXPECT_EQ(second(by_hand), second(cubed));
}

// The plugins' compilers abort the process if a manual axis is part of an axis of the first mesh.
TEST_F(Manual, BesideAMeshThatCutsTheSameDevicesInOtherPlaces) {
  for (const std::vector<std::int64_t>& ids :
       {std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, {4, 7, 5, 2, 1, 0, 6, 3}}) {
    Mesh tall({{"x", 2}, {"y", 4}}), wide({{"a", 4}, {"b", 1}, {"c", 2}}, ids);
    auto rows = manual(wide, P("a"), P("a"),
                       [](const Tensor& part) { return part * all_reduce(sum(part), "a"); },
                       {.axes = {"a"}});
    auto inner =
        manual(wide, P("c"), P("c"), [](const Tensor& part) { return part + 1; }, {.axes = {"c"}});
    auto nested = manual(wide, P("a"), P("a"), [&](const Tensor& part) { return inner(part); },
                         {.axes = {"a", "b"}});
    auto step = jit([&](Tensor p, Tensor q) { return std::pair(rows(p) + q, nested(p) + q); });
    Tensor p = mark_sharding(arange(8.0), tall, P("y")), q = mark_sharding(ones({8}), wide, P("a"));
    auto [first, second] = step(p, q);
    EXPECT_EQ(first.to_vector<float>(), (28 * arange(8.0) + 1).to_vector<float>());
    EXPECT_EQ(second.to_vector<float>(), (arange(8.0) + 2).to_vector<float>());
  }
}

// The all-reduced sum is a residual of the body.
TEST_F(Manual, SecondDerivativesOfBodiesInsideOfRegions) {
  using Function = std::function<Tensor(const Tensor&)>;
  using Body = std::function<Tensor(const Function&, const Tensor&)>;
  const std::pair<const char*, Body> bodies[] = {
      {"repeat", [](const Function& f, const Tensor& x) { return repeat(2, x, f); }},
      {"scan",
       [](const Function& f, const Tensor& x) {
         auto step = [&](Tensor c, Tensor k) { return std::pair(f(c * k) + c, f(c)); };
         auto [last, each] = scan(step, x, astype(counting({3}, 1), DType::f64) * 0.1);
         return last + sum(each, 0);
       }},
      {"cond",
       [](const Function& f, const Tensor& x) {
         return cond(
             zeros({}) < 1, f, [](const Tensor& t) { return t; }, x);
       }},
      {"checkpoint", [](const Function& f, const Tensor& x) { return checkpoint(f)(x); }}};
  Tensor x = sin(astype(counting({8}), DType::f64)) * 0.2;
  Function by_hand = [](const Tensor& t) { return tanh(t) * all_reduce(sum(t * t), "x"); };
  Function whole = [](const Tensor& t) { return tanh(t) * sum(t * t); };
  for (const auto& each : bodies) {
    const Body& body = each.second;
    auto second = [&](const Function& f) {
      auto first = grad([f](const Tensor& t) { return sum(f(t) * sin(t)); });
      return grad([first](const Tensor& t) { return sum(square(first(t))); })(x)
          .to_vector<double>();
    };
    auto f = manual(ring(), P("x"), P("x"), [&](const Tensor& t) { return body(by_hand, t); });
    EXPECT_THAT(second(f), Pointwise(testing::DoubleNear(1e-12),
                                     second([&](const Tensor& t) { return body(whole, t); })))
        << each.first;
  }
}

// The residuals of a body from a region inside it: a part, a number that varies by device, and a
// number that is the same on all devices.
TEST_F(Manual, DerivativesPassThroughRegionsInsideOfBodies) {
  auto parts = manual(ring(), P("x"), P("x"), [](const Tensor& part) {
    Tensor size = sum(square(part)), all = all_reduce(sin(size), "x");
    return tanh(part) * cos(size) + exp(part * 0.1) * all * 0.1;
  });
  // The same on the full value.
  auto whole = [](const Tensor& x) {
    Tensor rows = reshape(x, {4, x.shape()[0] / 4});
    Tensor size = sum(square(rows), 1, true), all = sum(sin(size));
    return reshape(tanh(rows) * cos(size) + exp(rows * 0.1) * all * 0.1, x.shape());
  };
  using Function = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, std::function<Tensor(const Function&, const Tensor&)>> bodies[] = {
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
  Tensor x = sin(counting({8})) * 0.2, w = cos(counting({8}));
  for (const auto& [name, body] : bodies) {
    auto derivatives = [&](const Function& f) {
      auto first = grad([&](const Tensor& t) { return sum(body(f, t) * w); });
      auto second = grad([&](const Tensor& t) { return sum(square(first(t))); });
      return stack({first(x), second(x)});
    };
    EXPECT_THAT(derivatives(parts).to_vector<float>(),
                Pointwise(FloatNear(1e-4f), derivatives(whole).to_vector<float>()))
        << name;
  }
  Function kept = checkpoint(parts, CheckpointPolicy::everything());
  auto gradient = [&](const Function& f) {
    return grad([&](const Tensor& t) { return sum(f(t) * w); })(x).to_vector<float>();
  };
  EXPECT_THAT(gradient(kept), Pointwise(FloatNear(1e-4f), gradient(whole)));
}

TEST_F(Manual, TheOperandOfAProductOrAMaximumIsFound) {
  Tensor x = from_host(std::vector<float>{3, 0, 5, 5}, {4});
  auto gradient = [&](ReduceKind kind) {
    return grad(manual(ring(), P("x"), P(),
                       [kind](const Tensor& part) { return sum(all_reduce(part, "x", kind)); }))(x)
        .to_vector<float>();
  };
  EXPECT_THAT(gradient(ReduceKind::kProd), ElementsAre(0, 75, 0, 0));
  EXPECT_THAT(gradient(ReduceKind::kMax), ElementsAre(0, 0, 0.5f, 0.5f));
}

TEST_F(Manual, NumbersOfTheFunctionAreDifferentiatedWithThePartsOfAll) {
  // A tensor of rank 0 may be captured; every device uses it.
  Tensor x = counting({4}, 1);
  auto f = [&](const Tensor& scale) {
    return manual(ring(), P("x"), P(),
                  [scale](const Tensor& part) { return all_reduce(sum(part * scale), "x"); })(x);
  };
  EXPECT_EQ(grad(f)(from_host(HostArray::scalar(2.0f))).item<float>(), 10);
}

// ---- Regions.

TEST_F(Manual, SomeAxesMayBeLeftToTheCompiler) {
  Tensor x = mark_sharding(counting({8, 4}), grid(), P("x", "y"));
  auto f = manual(grid(), P("x"), P(),
                  [](const Tensor& part) {
                    EXPECT_EQ(part.shape(), (Shape{4, 4}));
                    Tensor laid_out =
                        sharding_constraint(tanh(part / 32), Sharding(grid(), P(none, "y")));
                    return all_reduce(sum(laid_out, 0), "x");
                  },
                  {.axes = {"x"}});
  std::vector<float> expected = sum(tanh(counting({8, 4}) / 32), 0).to_vector<float>();
  EXPECT_THAT(f(x).to_vector<float>(), Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THAT(jit(f)(x).to_vector<float>(), Pointwise(FloatNear(1e-5f), expected));
}

TEST_F(Manual, SeveralRegionsWithFullValuesBetween) {
  auto program = [](const Tensor& x) {
    auto doubled = manual(grid(), P("y"), P("y"), [](const Tensor& part) { return part * 2; });
    auto summed = manual(grid(), P(axes("x", "y")), P(), [](const Tensor& part) {
      return all_reduce(part, {"x", "y"});
    });
    return summed(x) + sum(doubled(x));
  };
  EXPECT_EQ(jit(program)(counting({8})).item<float>(), 28 + 56);
  auto twice = [](const Tensor& x) {
    auto f = manual(grid(), P("x"), P("x"),
                    [](const Tensor& part) { return part - all_reduce(part, "x") / 2; });
    Tensor first = f(x);
    return f(first * first) + first;
  };
  std::vector<float> x{1, 2, 5, 8}, expected;
  std::vector<float> first{-2, -3, 2, 3}, square{4, 9, 4, 9};
  for (std::size_t i = 0; i < 4; ++i)
    expected.push_back(square[i] - (square[i % 2] + square[i % 2 + 2]) / 2 + first[i]);
  EXPECT_THAT(twice(from_host(x, {4})).to_vector<float>(), ElementsAreArray(expected));
  EXPECT_THAT(jit(twice)(from_host(x, {4})).to_vector<float>(), ElementsAreArray(expected));
}

// The index is of the region's function, wherever it is asked for.
TEST_F(Manual, AxisIndicesInsideLoopsAndBranches) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  auto index = [](const Tensor& t) { return t + axis_index({"z", "x"}); };
  for (const std::vector<std::string>& axes :
       {std::vector<std::string>{}, std::vector<std::string>{"z", "x"}}) {
    auto on_each = [&](auto f) {
      auto spec = P(meshard::axes("z", "x"));
      return manual(mesh, spec, spec, f, {.axes = axes})(zeros({4}, DType::i32))
          .template to_vector<std::int32_t>();
    };
    EXPECT_THAT(on_each([&](const Tensor& t) { return repeat(3, t, index); }),
                ElementsAre(0, 3, 6, 9));
    EXPECT_THAT(on_each([&](const Tensor& t) { return checkpoint(index)(t); }),
                ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(on_each([&](const Tensor& t) { return cond(equal(sum(t), 0), index, index, t); }),
                ElementsAre(0, 1, 2, 3));
    auto in_a_loop = [&](const Tensor& t) {
      return repeat(2, t, [&](const Tensor& u) { return repeat(2, u, index); });
    };
    EXPECT_THAT(on_each(in_a_loop), ElementsAre(0, 4, 8, 12));
    EXPECT_THAT(on_each([&](const Tensor& t) { return jit(in_a_loop)(t); }),
                ElementsAre(0, 4, 8, 12));
  }
}

// XLA knows no manual axes of size 1, and refuses collectives outside of manual regions.
// The devices along x choose differently, those along y alike.
TEST_F(Manual, CollectivesInBranchesOfOtherAxes) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  auto doubled = [](Tensor t) { return t * 2; };
  auto summed = [](const char* axis) {
    return [axis](Tensor t) { return vary(all_reduce(t, axis), axis); };
  };
  auto by_branch = manual(mesh, P({"x", "y"}), P({"x", "y"}), [&](Tensor part) {
    return cond(equal(axis_index("x"), 0), summed("y"), doubled, part);
  });
  EXPECT_THAT(by_branch(counting({4})).to_vector<float>(), ElementsAre(1, 1, 4, 6));
  Tensor weights = counting({4}, 1);
  Tensor gradient = grad([&](Tensor x) { return sum(by_branch(x) * weights); })(counting({4}));
  EXPECT_THAT(gradient.to_vector<float>(), ElementsAre(3, 3, 6, 8));
  auto by_step = manual(mesh, P({"x", "y"}), P({"x", "y"}), [&](Tensor part) {
    return fori_loop(
        0, 2, [&](Tensor i, Tensor c) { return cond(equal(i, 0), summed("x"), doubled, c); }, part);
  });
  EXPECT_THAT(by_step(counting({4})).to_vector<float>(), ElementsAre(4, 8, 4, 8));
  Tensor steps = grad([&](Tensor x) { return sum(by_step(x) * weights); })(counting({4}));
  EXPECT_THAT(steps.to_vector<float>(), ElementsAre(8, 12, 8, 12));
  auto waits = manual(mesh, P({"x", "y"}), P({"x", "y"}), [&](Tensor part) {
    return grad([&](Tensor t) {
      return sum(cond(equal(axis_index("x"), 0), summed("x"), doubled, t));
    })(part);
  });
  EXPECT_TRUE(throws_error([&] { jit(waits)(counting({4})); }, ErrorCode::kInvalidArgument,
                           {"manual_test.cc:", "[all_reduce] runs over {\"x\"} in a branch at",
                            "predicate varies over {\"x\"}"}));
}

TEST_F(Manual, CollectivesOverAxesOfSizeOne) {
  Mesh mesh({{"a", 1}, {"b", 2}});
  auto on_each = [&](auto f) {
    return jit(manual(mesh, P("a"), P("a"), f, {.axes = {"a"}}))(counting({4, 2}))
        .template to_vector<float>();
  };
  std::vector<float> same = counting({4, 2}).to_vector<float>();
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin})
    EXPECT_EQ(on_each([&](const Tensor& t) { return all_reduce(t, "a", kind); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return all_gather(t, "a", 1); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return all_gather_invariant(t, "a"); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return reduce_scatter(t, "a", 1); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return all_to_all(t, "a", 0, 1); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return ring_shift(t, "a"); }), same);
  EXPECT_EQ(on_each([](const Tensor& t) { return collective_permute(t, "a", {}); }),
            std::vector<float>(8, 0.0f));
  EXPECT_EQ(on_each([](const Tensor& t) { return t + axis_index("a"); }), same);
}

TEST_F(Manual, LocalValuesGoFromOneRegionToALaterOne) {
  Tensor x = counting({8});
  Tensor local = enable_manual_sharding(x, ring(), P("x"));
  EXPECT_EQ(local.shape(), (Shape{2}));
  Tensor number = sum(local);  // rank 0, different on each device
  Tensor full = disable_manual_sharding(local * 2, ring(), P("x"), {8});
  Tensor again = enable_manual_sharding(full * full, ring(), P("x"));
  Tensor y = disable_manual_sharding(again + local + number, ring(), P("x"), {8});
  std::vector<float> expected;
  for (int i = 0; i < 8; ++i)
    expected.push_back(static_cast<float>(4 * i * i + i + (i / 2) * 4 + 1));
  EXPECT_THAT(y.to_vector<float>(), ElementsAreArray(expected));
}

TEST_F(Manual, RunsOnAnyDevices) {
  Mesh odd({{"x", 4}}, {7, 5, 6, 4});
  auto f = [](const Mesh& mesh) {
    return manual(mesh, P("x"), P("x"),
                  [](const Tensor& part) { return ring_shift(part, "x") + axis_index("x") * 10; });
  };
  EXPECT_THAT(f(odd)(counting({4})).to_vector<float>(), ElementsAre(3, 10, 21, 32));
  Mesh pair({{"x", 2}}, {1, 5});
  EXPECT_THAT(f(pair)(counting({2})).to_vector<float>(), ElementsAre(1, 10));
  Mesh alone({{"x", 1}}, {3});
  EXPECT_THAT(f(alone)(counting({2})).to_vector<float>(), ElementsAre(0, 1));
  // The program numbers the devices in another order.
  Mesh back({{"x", 4}}, {4, 6, 5, 7});
  Tensor marked = mark_sharding(counting({4}), odd, P("x"));
  EXPECT_THAT(jit(f(back))(marked).to_vector<float>(), ElementsAre(3, 10, 21, 32));
}

TEST_F(Manual, DerivedMeshes) {
  Mesh flat = grid().flatten("all");
  auto total =
      manual(flat, P("all"), P(), [](const Tensor& part) { return all_reduce(part, "all"); });
  EXPECT_EQ(total(counting({8})).item<float>(), 28);
  Mesh split = grid().unflatten("y", {{"a", 2}, {"b", 2}});
  auto partly = manual(split, P("a"), P(), [](const Tensor& part) { return all_reduce(part, "a"); },
                       {.axes = {"a"}});
  EXPECT_THAT(partly(counting({4})).to_vector<float>(), ElementsAre(2, 4));
  auto sliced =
      manual(grid()["y"], P("y"), P(), [](const Tensor& part) { return all_reduce(part, "y"); });
  EXPECT_THAT(sliced(counting({8})).to_vector<float>(), ElementsAre(12, 16));
}

TEST_F(Manual, TheReportNamesTheUsersLine) {
  unsigned line = 0;
  auto f = jit(manual(ring(), P("x"), P(), [&](const Tensor& part) {
    line = __LINE__ + 1;
    return all_reduce(part, "x");
  }));
  f(counting({8}));
  EXPECT_THAT(explain(f).to_string(), HasSubstr(cat("manual_test.cc:", line)));
}

// ---- Errors.

TEST_F(Manual, LocalValuesAreNotRead) {
  Tensor local = enable_manual_sharding(counting({8}), ring(), P("x"));
  EXPECT_TRUE(throws_error([&] { local.to_host(); }, ErrorCode::kFailedPrecondition,
                           {"manual over {\"x\"}", "manual_test.cc:"}));
  EXPECT_TRUE(throws_error([&] { (local * 2).item<float>(); }, ErrorCode::kFailedPrecondition,
                           {"manual over {\"x\"}"}));
  EXPECT_THAT(local.placement(), HasSubstr("manual"));
  auto leak = jit([](const Tensor& x) { return enable_manual_sharding(x, ring(), P("x")); });
  EXPECT_TRUE(throws_error([&] { leak(counting({8})); }, ErrorCode::kInvalidArgument,
                           {"cannot return the local value", "manual_test.cc:"}));
}

// Bodies in bodies capture a number that is a full value.
TEST_F(Manual, NumbersInNestedBodies) {
  Tensor x = counting({2}, 1), two = from_host(std::vector<float>{2}, {});
  auto scaled = [&](const Tensor& t) {
    return jit([](Tensor u, Tensor n) { return u * n; })(t, 0.5) * two;
  };
  auto once = [&](const Tensor& t) { return checkpoint(scaled)(t); };
  auto twice = [&](const Tensor& t) { return checkpoint(once)(t); };
  auto thrice = [&](const Tensor& t) {
    return fori_loop(
        0, 2, [&](Tensor, Tensor c) { return twice(c); }, t);
  };
  Mesh mesh({{"x", 2}});
  for (const std::function<Tensor(const Tensor&)>& f :
       {std::function<Tensor(const Tensor&)>(once), std::function<Tensor(const Tensor&)>(twice),
        std::function<Tensor(const Tensor&)>(thrice)}) {
    EXPECT_THAT(manual(mesh, P("x"), P("x"), f)(x).to_vector<float>(), ElementsAre(1, 2));
    EXPECT_THAT(manual(mesh, P(), P(), f)(x).to_vector<float>(), ElementsAre(1, 2));
  }
}

}  // namespace
}  // namespace meshard
