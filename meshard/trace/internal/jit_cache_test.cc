#include "meshard/trace/internal/jit_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "meshard/ops/composite/operators.h"
#include "meshard/trace/evaluator_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::internal {
namespace {

using test::RecordingEvaluator;

// A storage with the given sharding.
struct MarkedStorage final : Storage {
  MarkedStorage(TensorType t, std::optional<Sharding> s)
      : Storage(Kind::kHost), type(std::move(t)), held(std::move(s)) {}
  const Sharding* sharding() const override { return held ? &*held : nullptr; }
  HostArray to_host(SourceLocation) const override { return HostArray::zeros(type); }
  std::string placement() const override { return "test"; }
  TensorType type;
  std::optional<Sharding> held;
};
Tensor stored(Shape shape, std::optional<Sharding> sharding = std::nullopt) {
  TensorType type{DType::f32, std::move(shape)};
  return make_array(type, make_storage<MarkedStorage>(type, std::move(sharding)), {});
}

// A storage that knows its type as a ShardedType, as arrays on devices do.
struct TypedStorage final : Storage {
  explicit TypedStorage(ShardedType t) : Storage(Kind::kHost, &type), type(std::move(t)) {}
  const Sharding* sharding() const override { return type.sharding(); }
  HostArray to_host(SourceLocation) const override { return HostArray::zeros(type.type()); }
  std::string placement() const override { return "test"; }
  ShardedType type;
};
Tensor typed(const ShardedType& type) {
  return make_array(type.type(), make_storage<TypedStorage>(type), {});
}

void describe(JitPaths& paths) {
  paths = {.tensors = {"argument 0", "argument 1"}, .statics = {}, .leaves = {1, 1}, .numbers = {}};
}

struct Case {
  explicit Case(JitOptions options = {}) : cache(std::move(options), SourceLocation::current()) {
    RecordingEvaluator::install();
  }
  std::shared_ptr<const JitEntry> find(const Tensor& a, const Tensor& b) {
    JitCall call;
    call.tensors.push_back(&a);
    call.tensors.push_back(&b);
    return cache.find(call);
  }
  std::shared_ptr<const JitEntry> call(const Tensor& a, const Tensor& b) {
    JitCall call;
    call.tensors.push_back(&a);
    call.tensors.push_back(&b);
    auto tracer = [&](std::span<const Tensor> parameters, std::shared_ptr<const void>&) {
      ++traces;
      if (during_trace) during_trace();
      return std::vector<Tensor>{parameters[0] + parameters[1]};
    };
    return cache.find_or_trace(call, {describe, tracer});
  }
  JitCache cache;
  std::atomic<int> traces = 0;
  std::function<void()> during_trace;
};

TEST(JitCache, AShardingIsPartOfTheSignature) {
  Case test;
  Mesh mesh({{"x", 4}});
  Sharding rows(mesh, P("x"));
  (void)test.call(stored({8}), stored({8}));
  (void)test.call(stored({8}, rows), stored({8}));
  (void)test.call(stored({8}, rows), stored({8}));
  (void)test.call(stored({8}, Sharding(mesh, P(none))), stored({8}));
  EXPECT_EQ(test.traces, 3);
  EXPECT_EQ(test.cache.stats().reasons,
            (std::vector<std::string>{
                "argument 0 is sharded Sharding(mesh<x=4>, P(\"x\")), was not sharded",
                "argument 0 is sharded Sharding(mesh<x=4>, P(none)), was sharded "
                "Sharding(mesh<x=4>, P(\"x\"))"}));
}

TEST(JitCache, AnArgumentIsRecognizedByItsOwnTypeOnly) {
  Case test;
  Mesh mesh({{"x", 4}});
  TensorType eight{DType::f32, Shape{8}};
  ShardedType rows(eight, Sharding(mesh, P("x"))), same(eight, Sharding(mesh, P("x"))),
      whole(eight, Sharding(mesh, P(none))), longer({DType::f32, Shape{12}}, *rows.sharding());
  auto by_rows = test.call(typed(rows), typed(whole));
  auto by_whole = test.call(typed(whole), typed(whole));
  ASSERT_NE(by_rows, by_whole);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(test.find(typed(rows), typed(whole)), by_rows);
    EXPECT_EQ(test.find(typed(same), typed(whole)), by_rows);
    EXPECT_EQ(test.find(typed(whole), typed(whole)), by_whole);
    EXPECT_EQ(test.find(typed(longer), typed(whole)), nullptr);
    EXPECT_EQ(test.find(typed(rows), typed(rows)), nullptr);
  }
  EXPECT_EQ(test.traces, 2);
}

TEST(JitCache, WhatTheCompilerChoseMatchesToo) {
  Case test;
  Sharding rows(Mesh({{"x", 4}}), P("x"));
  evaluator().place(stored({8}).value(), rows, {});  // the evaluator is the recording one
  static_cast<RecordingEvaluator&>(evaluator()).chosen = rows;
  auto first = test.call(stored({8}), stored({8}, rows));
  EXPECT_EQ(test.call(stored({8}, rows), stored({8}, rows)), first);
  EXPECT_EQ(test.call(stored({8}), stored({8}, rows)), first);
  EXPECT_EQ(test.traces, 1);
}

TEST(JitCache, AResultWithoutValueIsAnError) {
  Case test;
  Tensor a = stored({2});
  JitCall call;
  call.tensors.push_back(&a);
  auto tracer = [](std::span<const Tensor>, std::shared_ptr<const void>&) {
    return std::vector<Tensor>(1);
  };
  EXPECT_TRUE(throws_error(
      [&] {
        (void)test.cache.find_or_trace(call, {describe, tracer});
      },
      ErrorCode::kInvalidArgument,
      {"jit_cache_test.cc:", "tensor 0 of the function's result has no value"}));
}

TEST(JitCache, ParametersCarryTheShardingsOfTheArguments) {
  Case test;
  Sharding rows(Mesh({{"x", 4}}), P("x"));
  auto entry = test.call(stored({8}, rows), stored({8}));
  std::span<const Value> parameters = entry->program->source().graph.parameters();
  ASSERT_NE(leaf_sharding(parameters[0]), nullptr);
  EXPECT_EQ(*leaf_sharding(parameters[0]), rows);
  EXPECT_EQ(leaf_sharding(parameters[1]), nullptr);
}

TEST(JitCache, KeepsTheProgramsThatWereCalledLast) {
  Case test(JitOptions{.most_programs = 2});
  (void)test.call(stored({1}), stored({1}));
  (void)test.call(stored({2}), stored({2}));
  EXPECT_NE(test.find(stored({1}), stored({1})), nullptr);
  (void)test.call(stored({3}), stored({3}));
  EXPECT_EQ(test.cache.programs().size(), 2u);
  EXPECT_EQ(test.find(stored({2}), stored({2})), nullptr) << "not called for longest";
  EXPECT_NE(test.find(stored({1}), stored({1})), nullptr);
  EXPECT_NE(test.find(stored({3}), stored({3})), nullptr);
  EXPECT_EQ(test.traces, 3);
}

TEST(JitCache, ManyProgramsAreFoundAndReasonsAreBounded) {
  Case test(JitOptions{.most_programs = 1000});
  for (int i = 1; i <= 300; ++i) (void)test.call(stored({i}), stored({i}));
  for (int i = 1; i <= 300; ++i) EXPECT_NE(test.find(stored({i}), stored({i})), nullptr) << i;
  EXPECT_EQ(test.traces, 300);
  EXPECT_EQ(test.cache.stats().traces, 300u);
  EXPECT_EQ(test.cache.stats().reasons.size(), 100u);
  EXPECT_EQ(test.cache.stats().reasons.back(),
            "argument 0 is f32[300], was f32[299]; argument 1 is f32[300], was f32[299]");
}

// The first call is still being traced when the second call, a cache hit, is answered.
TEST(JitCache, OthersAreAnsweredWhileAFunctionIsTraced) {
  Case test;
  auto known = test.call(stored({1}), stored({1}));
  std::promise<void> begun, answered;
  test.during_trace = [&] {
    begun.set_value();
    answered.get_future().wait();
  };
  std::thread slow([&] { (void)test.call(stored({2}), stored({2})); });
  begun.get_future().wait();
  EXPECT_EQ(test.find(stored({1}), stored({1})), known);
  EXPECT_EQ(test.cache.stats().traces, 1u);
  answered.set_value();
  slow.join();
  EXPECT_EQ(test.cache.stats().traces, 2u);
}

TEST(JitCache, ThreadsThatAskForOneSignatureTraceItOnce) {
  Case test;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] { (void)test.call(stored({5}), stored({5})); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(test.traces, 1);
}

TEST(JitCache, AFailedTraceIsTriedAgain) {
  Case test;
  test.during_trace = [] { throw std::runtime_error("on purpose"); };
  EXPECT_THROW((void)test.call(stored({5}), stored({5})), std::runtime_error);
  test.during_trace = {};
  EXPECT_NE(test.call(stored({5}), stored({5})), nullptr);
}

TEST(JitCache, AFunctionThatCallsItselfIsAnErrorAndNoDeadlock) {
  Case test;
  test.during_trace = [&] { (void)test.call(stored({5}), stored({5})); };
  EXPECT_TRUE(throws_error([&] { (void)test.call(stored({5}), stored({5})); },
                           ErrorCode::kFailedPrecondition,
                           {"jit_cache_test.cc:", "\"main\"", "calls itself"}));
}

}  // namespace
}  // namespace meshard::internal
