#include "meshard/runtime/internal/loop_runner.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <thread>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Le;

// Loops that are long enough to run in parts.
constexpr int kLong = 500;

struct UnsyncedLoop : OnPlugin {
  Mesh all{{{"x", 8}}};
};

// What a step computes, on the host.
float host_step(float x) { return std::tanh(x + 1) * 0.5f; }
Tensor step(const Tensor& x) { return tanh(x + 1) * 0.5f; }

float host_loop(int steps) {
  float x = 1;
  for (int i = 0; i < steps; ++i) x = host_step(x);
  return x;
}
Tensor loop(Tensor x, int steps) {
  for (int i = 0; i < steps; ++i) x = step(x);
  return x;
}

TEST_F(UnsyncedLoop, CompilesTheSameFewProgramsForAnyNumberOfSteps) {
  EXPECT_THAT(loop(ones({4, 8}), 2 * kLong).to_vector<float>(),
              Each(FloatNear(host_loop(2 * kLong), 1e-6f)));
  EXPECT_THAT(done().compiles, Le(3u));
  restart();
  for (int steps : {kLong + 1, kLong + 2, kLong + 13, 4 * kLong}) {
    std::vector<float> values = loop(ones({4, 8}), steps).to_vector<float>();
    EXPECT_THAT(values, Each(FloatNear(host_loop(steps), 1e-6f)));
  }
  EXPECT_EQ(done().compiles, 0u);
}

TEST_F(UnsyncedLoop, ComputesEachNodeOnceAndLaunchesInProportion) {
  std::uint64_t nodes = 6;  // of a step: a constant, its broadcast, a sum, tanh, broadcast, product
  std::array<std::uint64_t, 2> launches;
  for (std::size_t i = 0; i < 2; ++i) {
    int steps = static_cast<int>(i + 1) * 2000;
    restart();
    sync(loop(ones({4, 8}), steps));
    EXPECT_THAT(done().nodes_run,
                testing::AllOf(testing::Ge(nodes * steps), Le(nodes * steps + 8)));
    launches[i] = done().launches;
  }
  EXPECT_LT(launches[0], 400u);
  EXPECT_NEAR(static_cast<double>(launches[1]), 2.0 * static_cast<double>(launches[0]), 100.0);
}

TEST_F(UnsyncedLoop, FewNodesWaitAtAnyTime) {
  Tensor x = ones({4, 8});
  std::size_t most = 0;
  for (int i = 0; i < 4 * kLong; ++i) {
    x = step(x);
    most = std::max(most, evaluator().count_pending(x.value()));
  }
  EXPECT_LT(most, 2 * internal::RecordLog::kFirstCheck);
  meshard::sync();
  EXPECT_LT(internal::record_log.alive_since(0).size(), 2 * internal::RecordLog::kFirstCheck);
}

TEST_F(UnsyncedLoop, ShortProgramsStayWhole) {
  Tensor x = loop(ones({4, 8}), 80);
  EXPECT_EQ(done().launches, 0u);
  sync(x);
  EXPECT_EQ(done().launches, 1u);
}

TEST_F(UnsyncedLoop, ALoopThatReadsRunsOnceForEachRead) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  for (int i = 0; i < kLong; ++i) {
    x = step(x);
    (void)x.item<float>();
  }
  EXPECT_EQ(done().launches, static_cast<std::uint64_t>(kLong));
  EXPECT_EQ(done().compiles, 1u);
}

TEST_F(UnsyncedLoop, OverAMeshKeepsItsSharding) {
  Tensor x = mark_sharding(ones({8, 8}), all, P("x"));
  Tensor y = loop(x, kLong);
  EXPECT_THAT(y.to_vector<float>(), Each(FloatNear(host_loop(kLong), 1e-6f)));
  EXPECT_FALSE(y.sharding()->is_fully_replicated());
  EXPECT_THAT(done().compiles, Le(4u));
}

TEST_F(UnsyncedLoop, ACounterBecomesAnArgument) {
  Tensor x = zeros({4});
  for (int i = 0; i < kLong; ++i) x = x * 0 + i;
  EXPECT_THAT(x.to_vector<float>(), Each(static_cast<float>(kLong - 1)));
  std::uint64_t compiles = done().compiles;
  EXPECT_THAT(compiles, Le(5u));
  restart();
  for (int i = 0; i < 3 * kLong; ++i) x = x * 0 + i;
  EXPECT_THAT(x.to_vector<float>(), Each(static_cast<float>(3 * kLong - 1)));
  EXPECT_THAT(done().compiles, Le(1u));
}

TEST_F(UnsyncedLoop, ACounterThatChangesSeldom) {
  Tensor x = zeros({4});
  for (int i = 0; i < 4 * kLong; ++i) x = x + i / kLong;
  EXPECT_THAT(x.to_vector<float>(), Each(static_cast<float>(6 * kLong)));
  EXPECT_THAT(done().compiles, Le(6u));
}

TEST_F(UnsyncedLoop, OverSlicesOfData) {
  std::vector<float> data(8 * kLong);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 11);
  Tensor rows = from_host(data, {kLong, 8});
  for (const Tensor& given : {rows, mark_sharding(rows, all, P(none, "x"))}) {
    restart();
    Tensor x = zeros({8});
    for (int i = 0; i < kLong; ++i) x = x * 0.5f + given[i];
    std::vector<float> values = x.to_vector<float>();
    for (std::size_t j = 0; j < 8; ++j) {
      float host = 0;
      for (std::size_t i = 0; i < kLong; ++i) host = host * 0.5f + data[8 * i + j];
      EXPECT_NEAR(values[j], host, 1e-4f);
    }
    EXPECT_THAT(done().compiles, Le(6u));
  }
}

TEST_F(UnsyncedLoop, WithASumOfWhatItComputes) {
  Tensor x = ones({4}), total = zeros({});
  float host = 1, host_total = 0;
  for (int i = 0; i < kLong; ++i) {
    x = step(x);
    total = total + sum(x);
    host = host_step(host);
    host_total += 4 * host;
  }
  EXPECT_NEAR(total.item<float>(), host_total, 1e-3f * host_total);
  EXPECT_THAT(done().compiles, Le(5u));
}

// What is recorded besides runs too: otherwise each value of the loop would stay for its sum.
TEST_F(UnsyncedLoop, WhoseResultsAreCollected) {
  Tensor x = ones({64});
  std::vector<Tensor> sums;
  for (int i = 0; i < kLong; ++i) {
    x = step(x);
    sums.push_back(sum(x));
  }
  std::size_t computed = 0;
  for (const Tensor& each : sums) computed += each.placement() != "recorded";
  EXPECT_GT(computed, sums.size() / 2);
  for (int i : {0, 100, kLong - 1})
    EXPECT_NEAR(sums[static_cast<std::size_t>(i)].item<float>(), 64 * host_loop(i + 1), 1e-3);
}

TEST_F(UnsyncedLoop, OfSeveralValues) {
  Tensor x = ones({4}), v = zeros({4});
  float host_x = 1, host_v = 0;
  for (int i = 0; i < kLong; ++i) {
    v = v * 0.9f - x * 0.1f;
    x += v * 0.1f;
    host_v = host_v * 0.9f - host_x * 0.1f;
    host_x += host_v * 0.1f;
  }
  EXPECT_THAT(x.to_vector<float>(), Each(FloatNear(host_x, 1e-4f)));
  EXPECT_THAT(v.to_vector<float>(), Each(FloatNear(host_v, 1e-4f)));
  EXPECT_THAT(done().compiles, Le(5u));
}

TEST_F(UnsyncedLoop, OnTwoSetsOfDevices) {
  Mesh left({{"x", 2}}, {0, 1}), right({{"x", 2}}, {2, 3});
  Tensor a = mark_sharding(ones({4}), left, P("x")), b = mark_sharding(ones({4}), right, P("x"));
  for (int i = 0; i < kLong; ++i) {
    a = step(a);
    b = step(b) + 0.25f;
  }
  EXPECT_THAT(a.to_vector<float>(), Each(FloatNear(host_loop(kLong), 1e-6f)));
  float host = 1;
  for (int i = 0; i < kLong; ++i) host = host_step(host) + 0.25f;
  EXPECT_THAT(b.to_vector<float>(), Each(FloatNear(host, 1e-6f)));
  EXPECT_THAT(done().compiles, Le(8u));
}

TEST_F(UnsyncedLoop, WithAnInterruptedStep) {
  Tensor x = ones({4});
  float host = 1;
  for (int i = 0; i < 3 * kLong; ++i) {
    x = step(x);
    host = host_step(host);
    if (i % 400 == 399) {
      x = x * x + 1;
      host = host * host + 1;
    }
  }
  EXPECT_THAT(x.to_vector<float>(), Each(FloatNear(host, 1e-5f)));
  EXPECT_THAT(done().compiles, Le(5u));
}

TEST_F(UnsyncedLoop, WhoseShapesGrow) {
  Tensor x = ones({1});
  for (int i = 0; i < 300; ++i) x = concat({x, ones({1})}) * 1.0f;
  EXPECT_EQ(x.size(), 301);
  EXPECT_THAT(x.to_vector<float>(), Each(1.0f));
}

// Each operation is a program then, as in an eager mode.
TEST_F(UnsyncedLoop, InRandomOrder) {
  Tensor x = ones({4}), middle;
  double host = 1, host_middle = 0;
  std::uint32_t state = 1;
  for (int i = 0; i < 4000; ++i) {
    state = state * 1664525 + 1013904223;
    if (state >> 31) {
      x = x * 0.5f + 0.25f;
      host = host * 0.5 + 0.25;
    } else {
      x = tanh(x);
      host = std::tanh(host);
    }
    if (i == 1000) {
      middle = x;
      host_middle = host;
    }
  }
  EXPECT_GT(done().launches, 1000u);
  EXPECT_THAT(done().compiles, Le(5u));
  EXPECT_NE(middle.placement(), "recorded");
  EXPECT_THAT(middle.to_vector<float>(), Each(FloatNear(static_cast<float>(host_middle), 1e-5f)));
}

TEST_F(UnsyncedLoop, InManualRegions) {
  Tensor x = mark_sharding(ones({8}), all, P("x"));
  for (int i = 0; i < kLong; ++i)
    x = manual(all, P("x"), P("x"), [](const Tensor& y) { return tanh(y + 1) * 0.5f; })(x);
  EXPECT_GT(done().launches, 5u);
  EXPECT_THAT(x.to_vector<float>(), Each(FloatNear(host_loop(kLong), 1e-6f)));
}

TEST_F(UnsyncedLoop, InADifferentiatedFunctionOnlyRecords) {
  auto f = [&](Tensor x) {
    restart();
    Tensor y = sum(loop(x, 150));
    EXPECT_EQ(done().launches, 0u);
    return y;
  };
  Tensor slope = grad(f)(full({2}, 0.3f));
  double x = 0.3, product = 1;
  for (int i = 0; i < 150; ++i) {
    double t = std::tanh(x + 1);
    product *= (1 - t * t) * 0.5;
    x = t * 0.5;
  }
  EXPECT_THAT(slope.to_vector<float>(), Each(FloatNear(static_cast<float>(product), 1e-6f)));
}

TEST_F(UnsyncedLoop, OfTrainingSteps) {
  Tensor w = full({4}, 2.0f);
  std::vector<Tensor> losses;
  float host = 2;
  for (int i = 0; i < 200; ++i) {
    auto [loss, slope] = value_and_grad([](Tensor x) { return sum(x * x); })(w);
    w = w - slope * 0.01f;
    losses.push_back(loss);
    if (i == 150) {
      EXPECT_NE(losses[10].placement(), "recorded");
    }
    host -= 2 * host * 0.01f;
  }
  EXPECT_THAT(w.to_vector<float>(), Each(FloatNear(host, 1e-5f)));
  EXPECT_THAT(done().compiles, Le(6u));
}

TEST_F(UnsyncedLoop, InsideJitIsOneProgram) {
  Tensor y = jit([&](Tensor x) {
    restart();
    Tensor z = loop(x, 150);
    EXPECT_EQ(done().launches, 0u);
    return z;
  })(ones({4}));
  EXPECT_THAT(y.to_vector<float>(), Each(FloatNear(host_loop(150), 1e-6f)));
  EXPECT_EQ(done().launches, 1u);
}

TEST_F(UnsyncedLoop, AnErrorComesWhenTheValueIsRead) {
  Mesh left({{"x", 2}}, {0, 1}), right({{"x", 2}}, {2, 3});
  Tensor x = mark_sharding(ones({4}), left, P("x"));
  std::uint32_t line = __LINE__ + 1;
  Tensor wrong = x * mark_sharding(ones({4}), right, P("x"));
  for (int i = 0; i < kLong; ++i) wrong = step(wrong);
  Tensor fine = loop(x, kLong);
  try {
    (void)wrong.to_host();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, line);
    EXPECT_THAT(error.what(), HasSubstr("two different sets of devices"));
  }
  EXPECT_THAT(fine.to_vector<float>(), Each(FloatNear(host_loop(kLong), 1e-6f)));
}

TEST_F(UnsyncedLoop, InSeveralThreads) {
  std::array<std::vector<float>, 4> found;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back(
        [&, t] { found[t] = loop(ones({4}), kLong + static_cast<int>(t)).to_vector<float>(); });
  for (std::thread& each : threads) each.join();
  for (std::size_t t = 0; t < found.size(); ++t)
    EXPECT_THAT(found[t], Each(FloatNear(host_loop(kLong + static_cast<int>(t)), 1e-6f)));
}

// Computes zeros, and counts.
struct ZeroParts final : PartEvaluator {
  RecordedPart part(std::uint64_t first, std::uint64_t last) override {
    return recorded_part(internal::record_log, first, last);
  }
  void make_arguments(std::span<const Value>, SourceLocation) override {}
  void run(std::span<const Value> values, SourceLocation) override {
    ++runs;
    if (fails) throw Error(ErrorCode::kInternal, "fails");
    most_results = std::max(most_results, values.size());
    for (const Value& value : values) {
      for (std::uint32_t i = 0; i < value->num_outputs(); ++i)
        value.node()->set_storage(i, make_storage<HostStorage>(HostArray::zeros(value->type(i))));
      value.node()->forget_operands();
    }
  }
  bool fails = false;
  std::size_t runs = 0, most_results = 0;
};

struct Parts : testing::Test {
  // One op recorded at that line. The runtime's evaluator is not asked, because the log is never
  // due for it.
  Tensor at(const Tensor& operand, int line) {
    internal::RecordLog& log = internal::record_log;
    try {
      if (log.is_due()) runner.check(log, parts, {});
    } catch (const Error&) {
      runner.fail(log);
    }
    SourceScope scope({"program.cc", "f", static_cast<std::uint32_t>(line)});
    return -operand;
  }
  Parts() {
    internal::record_log.check_at(internal::record_log.count() + internal::RecordLog::kFirstCheck);
  }
  ZeroParts parts;
  LoopRunner runner;
  Tensor x = from_host(std::vector<float>{1}, {1});
};

TEST_F(Parts, AProgramWithoutAPeriodIsDividedWhenItIsLong) {
  for (int i = 0; i < 4000; ++i) x = at(x, 1 + i);
  EXPECT_EQ(parts.runs, 0u);
  for (int i = 0; i < 8000; ++i) x = at(x, 5000 + i);
  EXPECT_GT(parts.runs, 8000u);
  EXPECT_EQ(parts.most_results, 1u);
}

TEST_F(Parts, PeriodsBeginWhereFewValuesAreInUse) {
  for (int i = 0; i < 1000; ++i) {
    Tensor a = at(x, 1), b = at(x, 2), c = at(x, 3);
    x = at(at(b, 4), 5);
  }
  EXPECT_GT(parts.runs, 10u);
  EXPECT_EQ(parts.most_results, 1u);
}

TEST_F(Parts, ALoopInALoop) {
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 30; ++j) x = at(at(x, 1), 2);
    x = at(x, 3);
  }
  EXPECT_GT(parts.runs, 50u);
  EXPECT_LT(parts.runs, 250u);
}

TEST_F(Parts, TheLoopMayEndAndAnotherBegin) {
  for (int i = 0; i < 1000; ++i) x = at(at(x, 1), 2);
  std::size_t runs = parts.runs;
  for (int i = 0; i < 1000; ++i) x = at(at(at(x, 3), 4), 5);
  EXPECT_GT(parts.runs, runs + 10);
  runner.finish_periods(internal::record_log, parts, {});
  EXPECT_LT(recorded_part(internal::record_log, 0, internal::record_log.count()).nodes.size(), 3u);
}

TEST_F(Parts, WhatFailsIsTriedSeldom) {
  parts.fails = true;
  for (int i = 0; i < 30000; ++i) x = at(x, 1);
  EXPECT_GT(parts.runs, 3u);
  EXPECT_LT(parts.runs, 8u);
}

TEST_F(Parts, UnusedValuesAreNotComputed) {
  for (int i = 0; i < 2000; ++i) (void)at(x, 1);
  EXPECT_EQ(parts.runs, 0u);
}

}  // namespace
}  // namespace meshard
