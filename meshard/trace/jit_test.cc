#include "meshard/trace/jit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <unordered_map>

#include "meshard/autodiff/grad.h"
#include "meshard/base/advice.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/selection.h"
#include "meshard/trace/evaluator_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using test::RecordingEvaluator;

struct Layer {
  Tensor w, b;
  int units = 4;
  MESHARD_FIELDS(w, b, units)
};

Tensor vector_of(float first, std::int64_t size = 2) {
  std::vector<float> values(static_cast<std::size_t>(size), first);
  return from_host(std::move(values), {size});
}

TEST(Jit, TracesOncePerSignature) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  int traced = 0;
  auto f = jit([&](Tensor x, Tensor y) {
    ++traced;
    return x + y;
  });
  (void)f(vector_of(1), vector_of(2));
  (void)f(vector_of(3), vector_of(4));
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(evaluator.runs, 2u);
  EXPECT_EQ(evaluator.text(0),
            "graph(%0: f32[2], %1: f32[2]) {\n  %2 = add(%0, %1) : f32[2]\n  return %2\n}\n");
  (void)f(vector_of(1, 3), vector_of(2, 3));
  EXPECT_EQ(traced, 2);
  JitStats stats = f.stats();
  EXPECT_EQ(stats.calls, 3u);
  EXPECT_EQ(stats.traces, 2u);
  EXPECT_EQ(stats.reasons, (std::vector<std::string>{"argument 0 is f32[3], was f32[2]; "
                                                     "argument 1 is f32[3], was f32[2]"}));
  EXPECT_EQ(f.programs().size(), 2u);
}

TEST(Jit, CopiesShareTheirPrograms) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor x) { return x + x; });
  auto g = f;
  (void)f(vector_of(1));
  (void)g(vector_of(1));
  EXPECT_EQ(f.stats().traces, 1u);
  EXPECT_EQ(f.stats().calls, 2u);
}

TEST(Jit, ReasonsNameThePath) {
  RecordingEvaluator::install();
  auto f = jit([](const std::vector<Layer>& layers, Tensor x) { return x + layers[0].w; });
  std::vector<Layer> layers = {{vector_of(1), vector_of(2)}, {vector_of(1), vector_of(2)}};
  (void)f(layers, vector_of(1));
  layers[1].b = vector_of(1, 5);
  (void)f(layers, vector_of(1));
  layers[1].units = 5;
  (void)f(layers, vector_of(1));
  layers.pop_back();
  (void)f(layers, vector_of(1));
  EXPECT_EQ(f.stats().reasons, (std::vector<std::string>{
                                   "argument 0[1].b is f32[5], was f32[2]",
                                   "argument 0[1].units is 5, was 4",
                                   "the structure of the arguments changed",
                               }));
}

TEST(Jit, ReasonsCompareWithTheNearestSignature) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor x, Tensor y, Static<int> n) { return n.value > 0 ? x + x : y + y; });
  (void)f(vector_of(1, 3), vector_of(1, 2), Static<int>{1});
  (void)f(vector_of(1, 4), vector_of(1, 5), Static<int>{2});
  (void)f(vector_of(1, 3), vector_of(1, 2), Static<int>{3});
  (void)f(vector_of(1, 7), vector_of(1, 2), Static<int>{4});
  EXPECT_EQ(f.stats().reasons, (std::vector<std::string>{
                                   "argument 2 is 2, was 1; argument 0 is f32[4], was f32[3]; "
                                   "argument 1 is f32[5], was f32[2]",
                                   "argument 2 is 3, was 1",
                                   "argument 2 is 4, was 3; argument 0 is f32[7], was f32[3]",
                               }));
}

TEST(Jit, OtherTypesOfArgumentsAreAnotherSignature) {
  RecordingEvaluator::install();
  auto f = jit([](const auto& pair) { return std::get<0>(pair) + std::get<1>(pair); });
  (void)f(std::pair(vector_of(1), vector_of(2)));
  (void)f(std::tuple(vector_of(1), vector_of(2)));
  EXPECT_EQ(f.stats().traces, 2u);
  EXPECT_EQ(f.stats().reasons[0], "the C++ types of the arguments changed");
}

TEST(Jit, NumbersAreTraced) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto f = jit([](Tensor x, Tensor rate, Tensor steps, Tensor on) {
    EXPECT_EQ(rate.type(), (TensorType{DType::f32, {}}));
    EXPECT_EQ(steps.dtype(), DType::i32);
    EXPECT_EQ(on.dtype(), DType::bool_);
    return x * rate;
  });
  for (int i = 0; i < 100; ++i) (void)f(vector_of(1), 0.5 * i, i, i % 2 == 0);
  EXPECT_EQ(f.stats().traces, 1u);
  EXPECT_EQ(evaluator.last_arguments[1].storage()->to_host({}).item<float>(), 49.5f);
  EXPECT_EQ(evaluator.last_arguments[2].storage()->to_host({}).item<std::int32_t>(), 99);
}

TEST(Jit, NumbersAreWeaklyTyped) {
  RecordingEvaluator::install();
  auto mixed = [](DType dtype) {
    Tensor result;
    auto f = jit([&](Tensor x, Tensor rate, Tensor steps) {
      result = x - 0.5 * (rate / steps) * x;
      EXPECT_EQ((rate * 2).dtype(), DType::f32);
      EXPECT_EQ((steps * 2).dtype(), DType::i32);
      EXPECT_EQ((steps * 0.5).dtype(), DType::f32);
      EXPECT_EQ((steps + rate).dtype(), DType::f32);
      EXPECT_EQ(where(less(x, 0), rate, x).dtype(), dtype);
      EXPECT_EQ(clip(x, 0, rate).dtype(), dtype);
      return result;
    });
    (void)f(from_host(HostArray::zeros({dtype, {2}})), 0.1, 3);
    return result.dtype();
  };
  for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    EXPECT_EQ(mixed(dtype), dtype);
  // A number that its default dtype cannot hold has a program of its own.
  auto f = jit([](Tensor x, Tensor n) { return x + n; });
  Tensor wide = from_host(HostArray::zeros({DType::i64, {}}));
  EXPECT_EQ(f(wide, 5).dtype(), DType::i64);
  EXPECT_EQ(f(wide, std::int64_t{5'000'000'000}).dtype(), DType::i64);
  EXPECT_EQ(f(vector_of(1), 5).dtype(), DType::f32);
}

TEST(Jit, StaticsArePartOfTheSignature) {
  RecordingEvaluator::install();
  auto f =
      jit([](Tensor x, Static<std::string> kind) { return kind.value == "twice" ? x + x : x; });
  (void)f(vector_of(1), Static<std::string>{"twice"});
  (void)f(vector_of(1), Static<std::string>{"once"});
  (void)f(vector_of(1), Static<std::string>{"twice"});
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(Jit, StaticsAreComparedOneByOne) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor x, Static<std::string> a, Static<std::string> b) {
    return a.value.size() > b.value.size() ? x + x : x;
  });
  (void)f(vector_of(1), Static<std::string>{"ab;"}, Static<std::string>{"c"});
  (void)f(vector_of(1), Static<std::string>{"ab"}, Static<std::string>{";c"});
  EXPECT_EQ(f.stats().traces, 2u) << "joined by ; they would be equal";
  EXPECT_EQ(f.stats().reasons,
            (std::vector<std::string>{"argument 1 is ab, was ab;; argument 2 is ;c, was c"}));
}

// Prints only its size: statics must be compared by value, not by their text.
struct Sizes {
  std::vector<int> all;
  std::string to_string() const { return cat(all.size(), " sizes"); }
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

TEST(Jit, StaticsAreComparedByEquality) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor x, Static<Sizes> sizes) { return sizes.value.all[0] ? x : x + x; });
  (void)f(vector_of(1), Static<Sizes>{{{0, 1}}});
  (void)f(vector_of(1), Static<Sizes>{{{1, 0}}});
  (void)f(vector_of(1), Static<Sizes>{{{0, 1}}});
  EXPECT_EQ(f.stats().traces, 2u);
  auto g = jit([](Tensor x, Static<double> s) { return std::signbit(s.value) ? x : x + x; });
  for (double each : {0.0, -0.0, std::nan(""), 0.0, -0.0, std::nan("")})
    (void)g(vector_of(1), Static<double>{each});
  EXPECT_EQ(g.stats().traces, 3u) << "0.0, -0.0 and NaN";
  char name[] = "one";
  auto h = jit([](Tensor x, Static<const char*> s) { return s.value[0] == 'o' ? x : x + x; });
  (void)h(vector_of(1), Static<const char*>{name});
  name[0] = 'O';
  (void)h(vector_of(1), Static<const char*>{name});
  EXPECT_EQ(h.stats().traces, 2u) << "the same memory, another text";
  EXPECT_EQ(h.stats().reasons, (std::vector<std::string>{"argument 1 is One, was one"}));
}

// All keys have the same hash.
struct BadHash {
  std::size_t operator()(const std::string&) const { return 0; }
};

TEST(Jit, KeysOfMapsAreCompared) {
  RecordingEvaluator::install();
  auto f = jit([](const std::unordered_map<std::string, Tensor, BadHash>& named) {
    return named.begin()->first == "a" ? named.begin()->second : named.begin()->second * 2;
  });
  (void)f(std::unordered_map<std::string, Tensor, BadHash>{{"a", vector_of(1)}});
  (void)f(std::unordered_map<std::string, Tensor, BadHash>{{"b", vector_of(1)}});
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(Jit, NumbersThatTheDtypeBesideThemCannotHoldAreRefused) {
  RecordingEvaluator::install();
  std::string line = cat("jit_test.cc:", __LINE__ + 1);
  auto f = jit([](Tensor x, Tensor n) { return x + 2 * n; });
  auto zero = [](DType dtype) { return from_host(HostArray::zeros({dtype, {}})); };
  for (DType dtype : {DType::i32, DType::u8, DType::f16})
    EXPECT_TRUE(throws_error([&] { (void)f(zero(dtype), 5000000000); }, ErrorCode::kInvalidArgument,
                             {line, cat(dtype, " cannot hold")}));
  for (DType dtype : {DType::f32, DType::bf16, DType::i64})
    EXPECT_TRUE(throws_error([&] { (void)f(zero(dtype), 1e300); }, ErrorCode::kInvalidArgument,
                             {line, "cannot hold"}));
  EXPECT_TRUE(throws_error([&] { (void)jit([&](Tensor x) { return f(x, 1e300); })(vector_of(1)); },
                           ErrorCode::kInvalidArgument, {line, "f32 cannot hold"}));
  EXPECT_EQ(f(zero(DType::i64), 5000000000).dtype(), DType::i64);
  EXPECT_EQ(f(zero(DType::f64), 1e300).dtype(), DType::f64);
  EXPECT_EQ(f(zero(DType::f32), 5000000000).dtype(), DType::f32);
  (void)f(vector_of(1), std::numeric_limits<double>::infinity());
  (void)f(vector_of(1), 2147483647u);
  EXPECT_EQ(f.stats().traces, 5u);
}

TEST(Jit, RepeatedTracingIsReportedOnceWithItsCause) {
  RecordingEvaluator::install();
  std::vector<std::string> heard;
  std::string line = cat("jit_test.cc:", __LINE__ + 1);
  auto f = jit([](const std::vector<Layer>& layers) { return layers[0].w * layers[0].units; });
  set_advice_handler([&](const Advice& advice) {
    heard.push_back(advice.to_string());
    EXPECT_EQ(f.stats().traces, 8u);  // a handler may query the stats
  });
  std::vector<Layer> layers = {{vector_of(1), vector_of(2)}};
  for (int i = 0; i < 20; ++i) {
    layers[0].units = i;
    (void)f(layers);
    EXPECT_EQ(heard.size(), i < 7 ? 0u : 1u) << i;
  }
  set_advice_handler(nullptr);
  ASSERT_EQ(heard.size(), 1u);
  for (const std::string& part : {line, std::string("argument 0[0].units is 7, was 6")})
    EXPECT_NE(heard[0].find(part), std::string::npos) << heard[0];
}

TEST(Jit, ResultsKeepTheirStructure) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor a, Tensor b) {
    return std::tuple(std::map<std::string, Tensor>{{"a", a}, {"b", b}}, std::optional(b),
                      std::optional<Tensor>(), std::array{b, a}, 7);
  });
  Tensor a = vector_of(1), b = vector_of(2);
  for (int call = 0; call < 2; ++call) {
    auto [named, maybe, never, two, count] = f(a, b);
    EXPECT_EQ(named.at("a").value(), a.value());
    EXPECT_EQ(named.at("b").value(), b.value());
    EXPECT_EQ(maybe->value(), b.value());
    EXPECT_FALSE(never.has_value());
    EXPECT_EQ(two[0].value(), b.value());
    EXPECT_EQ(two[1].value(), a.value());
    EXPECT_EQ(count, 7);
  }
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Jit, CapturedTensorsAreNotParameters) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  Tensor captured = vector_of(5);
  auto f = jit([&](Tensor x) { return x + captured; });
  (void)f(vector_of(1));
  EXPECT_EQ(
      evaluator.text(0),
      "graph(%0: f32[2]) captured(%1: f32[2]) {\n  %2 = add(%0, %1) : f32[2]\n  return %2\n}\n");
  EXPECT_EQ(evaluator.last_arguments.size(), 1u);
}

TEST(Jit, PendingArgumentsAreComputedFirst) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto f = jit([](Tensor x) { return x + x; });
  (void)f(vector_of(1) + vector_of(2));
  EXPECT_EQ(evaluator.evaluated, 1u);
  EXPECT_TRUE(evaluator.last_arguments[0].storage());
}

TEST(Jit, InsideAnotherTraceItIsRecordedInPlace) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto inner = jit([](Tensor x, Tensor y) { return x * y; });
  auto outer = jit([&](Tensor x) { return inner(x, x); });
  (void)outer(vector_of(1));
  EXPECT_EQ(inner.stats().traces, 0u);
  ASSERT_EQ(evaluator.programs.size(), 1u);
  EXPECT_EQ(evaluator.text(0),
            "graph(%0: f32[2]) {\n  %1 = multiply(%0, %0) : f32[2]\n  return %1\n}\n");
}

TEST(Jit, InsideADifferentiatedFunctionItIsRecordedInPlace) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto inner = jit([](Tensor x) { return x * x; });
  Tensor x = from_host(std::vector<float>{3}, {});
  Tensor g = grad([&](Tensor t) { return inner(t); })(x);
  EXPECT_TRUE(evaluator.programs.empty()) << "compiled, it would be a constant to the derivative";
  EXPECT_EQ(g.value()->op().name, "add");  // x * 1 + x * 1
}

TEST(Jit, DonatedArgumentsAreAllOfTheirTensors) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto f = jit([](Tensor x, const Layer& layer, Tensor y) { return x + layer.w + layer.b + y; },
               {.donate = {1, 2}});
  (void)f(vector_of(1), Layer{vector_of(1), vector_of(1)}, vector_of(1));
  EXPECT_EQ(evaluator.programs[0].donated, (std::vector<std::uint32_t>{1, 2, 3}));
}

TEST(Jit, DonatingAnArgumentThatIsNotThere) {
  RecordingEvaluator::install();
  auto f = jit([](Tensor x) { return x; }, {.donate = {1}});
  EXPECT_TRUE(
      throws_error([&] { (void)f(vector_of(1)); }, ErrorCode::kInvalidArgument,
                   {"jit_test.cc:", "cannot donate argument 1: the number of arguments is 1"}));
}

TEST(Jit, TheNameIsTheModules) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  (void)jit([](Tensor x) { return x; }, {.name = "train_step"})(vector_of(1));
  EXPECT_EQ(evaluator.programs[0].name, "train_step");
}

TEST(Jit, AnErrorWhileTracingLeavesNoTrace) {
  RecordingEvaluator& evaluator = RecordingEvaluator::install();
  auto f = jit([](Tensor x, Tensor y) { return x + y; });
  EXPECT_THROW((void)f(vector_of(1, 2), vector_of(1, 3)), Error);
  EXPECT_FALSE(tracing());
  EXPECT_TRUE(evaluator.programs.empty());
  (void)f(vector_of(1), vector_of(2));
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST(Jit, ThreadsTraceOnce) {
  RecordingEvaluator::install();
  std::atomic<int> traced{0};
  auto f = jit([&](Tensor x) {
    ++traced;
    return x;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (void)f(vector_of(1));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(f.stats().calls, 200u);
}

}  // namespace
}  // namespace meshard
