#include "meshard/trace/jit_cache.h"

#include <gtest/gtest.h>

#include "meshard/ops/composite/operators.h"
#include "meshard/trace/evaluator_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::internal {
namespace {

using test::RecordingEvaluator;

// A stored tensor that lies as `sharding` says.
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

struct Case {
  Case() { RecordingEvaluator::install(); }
  const JitEntry& call(const Tensor& a, const Tensor& b) {
    JitCall call;
    call.tensors.push_back(&a);
    call.tensors.push_back(&b);
    JitPaths paths{{"argument 0", "argument 1"}, {}};
    auto tracer = [&](std::span<const Tensor> parameters, JitEntry&) {
      ++traces;
      return std::vector<Tensor>{parameters[0] + parameters[1]};
    };
    return cache.find_or_trace(call, {1, 1}, paths, tracer);
  }
  JitCache cache{{}, SourceLocation::current()};
  int traces = 0;
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

TEST(JitCache, WhatTheCompilerChoseMatchesToo) {
  Case test;
  Sharding rows(Mesh({{"x", 4}}), P("x"));
  evaluator().place(stored({8}).value(), rows, {});  // the evaluator is the recording one
  static_cast<RecordingEvaluator&>(evaluator()).chosen = rows;
  const JitEntry& first = test.call(stored({8}), stored({8}, rows));
  EXPECT_EQ(&test.call(stored({8}, rows), stored({8}, rows)), &first);
  EXPECT_EQ(&test.call(stored({8}), stored({8}, rows)), &first);
  EXPECT_EQ(test.traces, 1);
}

TEST(JitCache, AResultWithoutValueIsAnError) {
  Case test;
  Tensor a = stored({2});
  JitCall call;
  call.tensors.push_back(&a);
  auto tracer = [](std::span<const Tensor>, JitEntry&) { return std::vector<Tensor>(1); };
  EXPECT_TRUE(throws_error(
      [&] {
        (void)test.cache.find_or_trace(call, {1}, {{"argument 0"}, {}}, tracer);
      },
      ErrorCode::kInvalidArgument,
      {"jit_cache_test.cc:", "tensor 0 of the function's result has no value"}));
}

TEST(JitCache, ParametersCarryTheShardingsOfTheArguments) {
  Case test;
  Sharding rows(Mesh({{"x", 4}}), P("x"));
  const JitEntry& entry = test.call(stored({8}, rows), stored({8}));
  ASSERT_NE(leaf_sharding(entry.graph.parameters()[0]), nullptr);
  EXPECT_EQ(*leaf_sharding(entry.graph.parameters()[0]), rows);
  EXPECT_EQ(leaf_sharding(entry.graph.parameters()[1]), nullptr);
}

}  // namespace
}  // namespace meshard::internal
