// jit on real devices: what it compiles, which values become hidden arguments, and what it donates.
#include "meshard/trace/jit.h"

#include <cmath>
#include <thread>

#include "meshard/runtime/loaded_program.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using JitOnDevices = OnDevices;
using testing::ElementsAre;
using testing::HasSubstr;

struct DenseLayer {
  Tensor w, b;
  MESHARD_FIELDS(w, b)
};
struct Model {
  std::vector<DenseLayer> layers;
  std::map<std::string, Tensor> named;
  std::optional<Tensor> scale;
  MESHARD_FIELDS(layers, named, scale)
};

TEST_F(JitOnDevices, CompilesOnceForTwoCalls) {
  auto f = jit([](Tensor x, Tensor y) { return x * y + 1; });
  Tensor x = counting({4}), y = counting({4}, 10);
  EXPECT_EQ(f(x, y).to_vector<float>(), (std::vector<float>{1, 12, 25, 40}));
  EXPECT_EQ(f(y, y).to_vector<float>(), (std::vector<float>{101, 122, 145, 170}));
  EXPECT_EQ(f.stats().calls, 2u);
  EXPECT_EQ(f.stats().traces, 1u);
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().launches, 2u);
}

TEST_F(JitOnDevices, EqualProgramsOfTwoFunctionsCompileOnce) {
  auto f = [](Tensor x) { return x * x - 7; };
  (void)jit(f)(counting({5}));
  (void)jit(f)(counting({5}));
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().cache_hits, 1u);
}

TEST_F(JitOnDevices, StructuresGoInAndOut) {
  Model model{{{counting({2}), counting({2}, 1)}, {counting({2}, 2), counting({2}, 3)}},
              {{"a", counting({1}, 5)}},
              counting({}, 9)};
  auto f = jit([](const Model& m) {
    Model out = m;
    for (DenseLayer& layer : out.layers) layer.w = layer.w + layer.b;
    out.named.at("a") = out.named.at("a") * 2;
    out.scale = *m.scale + 1;
    return std::tuple(out, std::pair(m.layers[0].w, 3),
                      std::array<Tensor, 2>{m.layers[1].w, *m.scale});
  });
  for (int call = 0; call < 2; ++call) {
    auto [out, pair, array] = f(model);
    EXPECT_THAT(out.layers[0].w.to_vector<float>(), ElementsAre(1, 3));
    EXPECT_THAT(out.layers[1].w.to_vector<float>(), ElementsAre(5, 7));
    EXPECT_THAT(out.layers[1].b.to_vector<float>(), ElementsAre(3, 4));
    EXPECT_THAT(out.named.at("a").to_vector<float>(), ElementsAre(10));
    EXPECT_EQ(out.scale->item<float>(), 10);
    EXPECT_THAT(pair.first.to_vector<float>(), ElementsAre(0, 1));
    EXPECT_EQ(pair.second, 3);
    EXPECT_THAT(array[0].to_vector<float>(), ElementsAre(2, 3));
    EXPECT_EQ(array[1].item<float>(), 9);
  }
  EXPECT_EQ(f.stats().traces, 1u);
  model.layers.pop_back();
  model.scale.reset();
  auto g = jit([](const Model& m) { return std::pair(m.layers.back().b, m.scale); });
  auto [b, scale] = g(model);
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_FALSE(scale.has_value());
}

TEST_F(JitOnDevices, HundredLearningRatesCompileOnce) {
  auto step = jit([](Tensor w, Tensor rate) { return w - rate * w; });
  Tensor w = counting({3}, 1);
  for (int i = 0; i < 100; ++i) {
    float rate = 0.01f * static_cast<float>(i);
    EXPECT_EQ(step(w, rate).to_vector<float>()[1], 2 - rate * 2) << i;
  }
  EXPECT_EQ(step.stats().traces, 1u);
  EXPECT_EQ(done().compiles, 1u);
}

TEST_F(JitOnDevices, StaticsAreConstants) {
  auto f = jit([](Tensor x, Static<int> power) {
    Tensor y = x;
    for (int i = 1; i < power.value; ++i) y = y * x;
    return y;
  });
  EXPECT_EQ(f(counting({}, 2), Static{3}).item<float>(), 8);
  EXPECT_EQ(f(counting({}, 2), Static{5}).item<float>(), 32);
  EXPECT_EQ(f(counting({}, 3), Static{3}).item<float>(), 27);
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_THAT(f.stats().reasons, ElementsAre(HasSubstr("argument 1 is 5, was 3")));
}

TEST_F(JitOnDevices, CapturedTensorsAreHiddenArguments) {
  Tensor host = counting({2}, 5);
  Tensor computed = host * 2;
  sync({computed});
  Tensor pending = host + 1;  // is not computed before the jit needs it
  auto f = jit([&](Tensor x) { return x + host + computed + pending; });
  EXPECT_THAT(f(counting({2})).to_vector<float>(), ElementsAre(5 + 10 + 6, 1 + 6 + 12 + 7));
  EXPECT_NE(pending.placement(), "recorded");
  host = counting({2}, 100);  // the value at tracing time is used
  EXPECT_THAT(f(counting({2})).to_vector<float>(), ElementsAre(21, 26));
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST_F(JitOnDevices, JitInsideJitIsRecordedInPlace) {
  auto inner = jit([](Tensor x, Tensor by) { return x * by; });
  auto outer = jit([&](Tensor x) { return inner(x, 3) + inner(x, x); });
  EXPECT_THAT(outer(counting({3})).to_vector<float>(), ElementsAre(0, 4, 10));
  EXPECT_EQ(inner.stats().traces, 0u);
  EXPECT_EQ(done().launches, 1u);
}

TEST_F(JitOnDevices, GradGoesThroughJit) {
  auto cube = jit([](Tensor x) { return x * x * x; });
  Tensor x = counting({}, 2);
  EXPECT_EQ(grad([&](Tensor t) { return cube(t); })(x).item<float>(), 12);
  EXPECT_EQ(jit(grad([&](Tensor t) { return cube(t); }))(x).item<float>(), 12);
}

TEST_F(JitOnDevices, ParametersMayBeResults) {
  Mesh mesh({{"x", 4}});
  Tensor x = mark_sharding(counting({8}), mesh, P("x"));
  auto f = jit([](Tensor a, Tensor b) { return std::array<Tensor, 3>{b, a, b}; });
  for (int call = 0; call < 2; ++call) {
    auto out = f(x, counting({2}));
    EXPECT_EQ(out[0].to_vector<float>(), numbers(2));
    EXPECT_EQ(out[1].to_vector<float>(), numbers(8));
    EXPECT_EQ(out[2].to_vector<float>(), numbers(2));
    EXPECT_EQ(out[1].sharding(), x.sharding());
  }
}

TEST_F(JitOnDevices, NoResultsAndNoArguments) {
  auto constant = jit([] { return arange(3); });
  EXPECT_THAT(constant().to_vector<std::int32_t>(), ElementsAre(0, 1, 2));
  Mesh mesh({{"x", 8}});
  auto marked = jit([&] { return mark_sharding(astype(arange(8), DType::f32), mesh, P("x")); });
  EXPECT_EQ(marked().to_vector<float>(), numbers(8));
}

const void* address(const Tensor& tensor, std::size_t shard = 0) {
  return reinterpret_cast<const void*>(
      device_array(tensor).buffers()[shard].unsafe_pointer().value());
}

TEST_F(JitOnDevices, DonatedMemoryIsReused) {
  for (std::int64_t devices : {1, 4}) {
    Mesh mesh({{"x", devices}});
    auto f = jit([](Tensor x) { return x + 1; });
    Tensor x = f(mark_sharding(counting({64}), mesh, P("x")));  // private to the device
    auto step = jit([&](Tensor a) { return mark_sharding(a * 2, mesh, P("x")); }, {.donate = {0}});
    x = mark_sharding(x, mesh, P("x"));
    sync({x});
    std::vector<const void*> before;
    for (std::size_t i = 0; i < device_array(x).num_shards(); ++i) before.push_back(address(x, i));
    Tensor y = step(x);
    EXPECT_EQ(y.to_vector<float>(), numbers(64, 2, 2));
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(address(y, i), before[i]) << i;
    EXPECT_TRUE(throws_error([&] { (void)x.to_host(); }, ErrorCode::kFailedPrecondition,
                             {"jit_test.cc:", "donated", "f32[64]"}));
  }
}

TEST_F(JitOnDevices, AnErrorBeforeTheLaunchConsumesNothing) {
  Mesh mesh({{"x", 4}});
  auto f =
      jit([&](Tensor a, Tensor b) { return std::pair(mark_sharding(a + 1, mesh, P("x")), b + 1); },
          {.donate = {0}});
  auto fresh = [&](float first) {
    Tensor t = mark_sharding(counting({8}, first), mesh, P("x")) + 0;
    sync({t});
    return t;
  };
  auto spend = jit([&](Tensor a) { return mark_sharding(a + 1, mesh, P("x")); }, {.donate = {0}});
  Tensor a = fresh(0), b = fresh(1);
  (void)spend(b);
  ASSERT_FALSE(device_array(b).is_live());
  EXPECT_TRUE(throws_error([&] { (void)f(a, b); }, ErrorCode::kFailedPrecondition,
                           {"argument 1", "f32[8]", "donated", "it was made at jit_test.cc:"}));
  EXPECT_EQ(a.to_vector<float>(), numbers(8)) << "the other argument lives";
  Tensor c = fresh(3);
  EXPECT_EQ(f(a, c).first.to_vector<float>(), numbers(8, 1));
  EXPECT_EQ(c.to_vector<float>(), numbers(8, 3));
}

TEST_F(JitOnDevices, DonatedAndAnotherArgumentIsAnError) {
  auto f = jit([](Tensor a, Tensor b) { return a + b; }, {.donate = {0}});
  Tensor a = counting({4}) + 0;
  sync({a});
  EXPECT_TRUE(throws_error([&] { (void)f(a, a); }, ErrorCode::kInvalidArgument, {"jit_test.cc:"}));
  EXPECT_EQ(a.to_vector<float>(), numbers(4));
}

TEST_F(JitOnDevices, TwoThreadsTraceOnce) {
  auto f = jit([](Tensor x) { return x * 3 - 1; });
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        results[t] = f(counting({4}, static_cast<float>(t))).to_vector<float>();
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < 4; ++t)
    EXPECT_EQ(results[t], numbers(4, 3 * static_cast<float>(t) - 1, 3));
  EXPECT_EQ(f.stats().traces, 1u);
  EXPECT_EQ(f.stats().calls, 80u);
}

TEST_F(JitOnDevices, UnmarkedStateSettlesAfterOneCompile) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto step = jit([](Tensor w, Tensor x) {
    Tensor y = tanh(matmul(x, w));
    return std::pair(w - 0.5f * matmul(permute_dims(x, {1, 0}), y), mean(y));
  });
  Tensor x = mark_sharding(counting({16, 8}), mesh, P("data", none));
  Tensor w = counting({8, 4});
  for (int i = 0; i < 4; ++i) {
    auto [next, loss] = step(w, x);
    w = next;
    (void)loss.item<float>();
  }
  EXPECT_EQ(step.stats().traces, 1u) << testing::PrintToString(step.stats().reasons);
  EXPECT_EQ(done().compiles, 1u);
}

TEST_F(JitOnDevices, TheChosenShardingOfAnArgumentIsTheSameSignature) {
  Mesh mesh({{"data", 8}});
  auto f = jit([](Tensor w, Tensor x) { return sum(matmul(x, w)); });
  Tensor x = mark_sharding(counting({16, 8}), mesh, P("data", none));
  Tensor w = counting({8, 4});
  float first = f(w, x).item<float>();
  ASSERT_EQ(f.programs().size(), 1u);
  const Sharding& chosen = *f.programs()[0]->parameter_sharding(0);
  EXPECT_EQ(f(mark_sharding(w, chosen), x).item<float>(), first);
  EXPECT_EQ(f.stats().traces, 1u);
  restart();
  EXPECT_EQ(f(w, x).item<float>(), first);
  EXPECT_EQ(done().buffers_sent, 0u) << "a host value is placed once";
}

TEST_F(JitOnDevices, OpenDimensionsAreTheCompilersAndStayOnTheDevices) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto f = jit([](Tensor x) { return x * 2; });
  Tensor x = mark_sharding(counting({8, 8}), mesh, P("data", unconstrained));
  EXPECT_EQ(f(x).to_vector<float>(), numbers(64, 0, 2));
  restart();
  EXPECT_EQ(f(x).to_vector<float>(), numbers(64, 0, 2));
  EXPECT_EQ(done().buffers_sent, 0u) << "no way through the host";
}

// Their largest element is computed by max_of_numbers, which may drop a NaN between devices.
TEST_F(JitOnDevices, SoftmaxKeepsNaNOnSeveralDevices) {
  Mesh mesh({{"x", 8}});
  std::vector<float> values = numbers(32);
  values[5] = std::nanf("");
  Tensor x = mark_sharding(from_host(values, {2, 16}), mesh, P(none, "x"));
  auto [softmaxes, sums, losses] = jit([](Tensor t) {
    Tensor classes = from_host(std::vector<std::int32_t>{3, 3}, {2});
    return std::tuple(softmax(t), logsumexp(t, -1),
                      cross_entropy(t, classes, {.reduction = LossReduction::kNone}));
  })(x);
  std::vector<float> all = softmaxes.to_vector<float>();
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(std::isnan(all[i]), i < 16) << i;
  for (const Tensor& each : {sums, losses}) {
    EXPECT_TRUE(std::isnan(each.to_vector<float>()[0]));
    EXPECT_FALSE(std::isnan(each.to_vector<float>()[1]));
  }
}

// Of a function of an array and a number: what happens to the number inside.
template <class F>
Tensor with_number(DType dtype, F use) {
  Tensor x = from_host(HostArray::zeros({dtype, {4}})) + 3;
  return jit([&](const Tensor& array, const Tensor& number) { return use(array, number); })(x, 0.1);
}

// As in JAX: a number takes part with the dtype of the array beside it, also when it is the
// argument of a function inside. 0.1 is not an f32, so that an f64 shows whether digits were lost.
TEST_F(JitOnDevices, NumbersStayWeaklyTypedAsArgumentsOfFunctionsInside) {
  auto times = [](const Tensor& x, const Tensor& s) { return x * s; };
  auto in_checkpoint = [&](const Tensor& x, const Tensor& s) { return checkpoint(times)(x, s); };
  auto in_branch = [&](const Tensor& x, const Tensor& s) {
    return cond(
        less(sum(x), 0), [](const Tensor& a, const Tensor& b) { return a - b; }, times, x, s);
  };
  Mesh mesh({{"x", 4}});
  auto in_region = [&](const Tensor& x, const Tensor& s) {
    return manual(mesh, SpecList{P("x"), P()}, P("x"), times)(x, s);
  };
  auto scaled = custom_vjp(
      [](const Tensor& x, const Tensor& s) { return std::pair(x * s, std::tuple(x, s)); },
      [](const std::tuple<Tensor, Tensor>& saved, const Tensor& cotangent) {
        return std::pair(cotangent * std::get<1>(saved), sum(cotangent * std::get<0>(saved)));
      });
  auto check = [](auto use, const char* which) {
    for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
      Tensor made = with_number(dtype, use);
      EXPECT_EQ(made.dtype(), dtype) << which;
      if (dtype != DType::f64) continue;
      EXPECT_EQ(made.to_vector<double>()[0], 3 * 0.1) << which;
    }
  };
  check(in_checkpoint, "checkpoint");
  check(in_branch, "cond");
  check(in_region, "manual");
  check(scaled, "custom_vjp");
}

// d sum(x * s) / ds = sum(x), d/dx = s; the derivative by the number has the number's own dtype.
TEST_F(JitOnDevices, NumbersStayWeaklyTypedWhenTheyAreDifferentiated) {
  for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
    std::vector<Tensor> made;
    Tensor x = from_host(HostArray::zeros({dtype, {4}})) + 3;
    auto loss = [&](const Tensor& array, const Tensor& number) {
      Tensor product = array * number;
      EXPECT_EQ(product.dtype(), dtype);
      return sum(product * product);
    };
    auto [by_array, by_number] = jit([&](const Tensor& array, const Tensor& number) {
      return grad<0, 1>(loss)(array, number);
    })(x, 0.1);
    EXPECT_EQ(by_array.dtype(), dtype);
    EXPECT_EQ(by_number.dtype(), DType::f32);
    double tolerance = dtype == DType::bf16 ? 0.05 : dtype == DType::f16 ? 0.01 : 1e-5;
    EXPECT_NEAR(by_number.astype(DType::f64).to_vector<double>()[0], 7.2, 7.2 * tolerance);
    if (dtype == DType::f64) {
      EXPECT_EQ(by_array.to_vector<double>()[0], 2 * (3 * 0.1) * 0.1);
    }
    Tensor tangent = jit([&](const Tensor& array, const Tensor& number) {
      return jvp(loss, std::tuple(array, number),
                 std::tuple(Tensor(zeros_like(array)), Tensor(ones({}, DType::f32))))
          .second;
    })(x, 0.1);
    EXPECT_NEAR(tangent.astype(DType::f64).to_vector<double>()[0], 7.2, 7.2 * tolerance);
  }
}

}  // namespace
}  // namespace meshard
