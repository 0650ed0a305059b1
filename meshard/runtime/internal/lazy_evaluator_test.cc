// Computes recorded tensors on demand.

#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Evaluating = OnPlugin;
using testing::ElementsAre;

Tensor vector_of(std::vector<float> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}

TEST_F(Evaluating, MarkingSendsEachShardOnce) {
  Tensor x = vector_of({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(done().buffers_sent, 0u);
  Mesh mesh({{"x", 4}});
  Tensor marked = mark_sharding(x, mesh, P("x"));
  EXPECT_EQ(done().buffers_sent, 4u);
  EXPECT_EQ(done().bytes_sent, 32u);
  EXPECT_EQ(done().buffers_read, 0u);
  EXPECT_EQ(mark_sharding(marked, mesh, P("x")).value(), marked.value())
      << "it is sharded so already";
  EXPECT_EQ(x.placement(), "host") << "the unmarked one stays as it is";
}

TEST_F(Evaluating, HandlesOnTheWayAreKeptAndOthersNot) {
  Tensor x = vector_of({1, 2});
  Tensor kept = exp(x);
  Tensor y = kept * kept + kept;
  const Node* node = kept.value().node();
  (void)y.to_host();
  EXPECT_NE(node->storage(), nullptr);
  EXPECT_TRUE(y.value()->operands().empty()) << "what led to a computed value is released";
}

TEST_F(Evaluating, EachResultOfAComputedNodeIsALeafOfItsOwn) {
  std::vector<Tensor> sorted = sort({vector_of({3, 1, 2}), vector_of({30, 10, 20})});
  Tensor later = sorted[1] - sorted[0];  // recorded before they are computed
  EXPECT_THAT((sorted[0] + 1).to_vector<float>(), ElementsAre(2, 3, 4));
  ASSERT_NE(sorted[1].value().storage(), nullptr);
  EXPECT_THAT((sorted[1] + 1).to_vector<float>(), ElementsAre(11, 21, 31));
  EXPECT_THAT(later.to_vector<float>(), ElementsAre(9, 18, 27));
  Tensor x = vector_of({1, 1, 1});
  EXPECT_THAT(jit([&](Tensor t) { return t * sorted[1] - sorted[0]; })(x).to_vector<float>(),
              ElementsAre(9, 18, 27));
}

TEST_F(Evaluating, OperandsStayForADerivative) {
  internal::KeepOperandsScope keep;
  Tensor y = vector_of({1, 2}) * 3;
  (void)y.to_host();
  EXPECT_FALSE(y.value()->operands().empty());
}

TEST_F(Evaluating, TheSameValueTwiceInOneSync) {
  Tensor y = vector_of({1, 2}) + 1;
  sync({y, y});
  EXPECT_EQ(done().launches, 1u);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(2, 3));
}

TEST_F(Evaluating, ALeakedTracedValueCannotBeComputed) {
  Tensor leaked, parameter;
  {
    internal::TraceScope scope;
    parameter = make_parameter({DType::f32, {2}}, std::nullopt, {"user.cc", "f", 5});
    leaked = exp(In(parameter, {"user.cc", "f", 6}));
  }
  for (const Tensor& each : {leaked, parameter})
    EXPECT_TRUE(throws_error([&] { sync({each}); }, ErrorCode::kFailedPrecondition,
                             {"lazy_evaluator_test.cc:", "traced value", "recorded at user.cc:"}));
  for (const Tensor& each : {leaked, parameter}) {
    Tensor later = each + 1;
    std::uint32_t line = __LINE__ + 1;
    EXPECT_TRUE(throws_error([&] { (void)later.to_host(); },
                             each.value() == leaked.value() ? ErrorCode::kFailedPrecondition
                                                            : ErrorCode::kInvalidArgument,
                             {"user.cc:", "traced value", cat("lazy_evaluator_test.cc:", line)}));
  }
}

TEST_F(Evaluating, DifferentDevicesInOneProgramAreAnErrorWithBothLines) {
  Mesh left({{"x", 2}}), right({{"x", 2}}, {2, 3});
  std::uint32_t line = __LINE__ + 1;
  Tensor a = mark_sharding(vector_of({1, 2}), left, P("x"));
  Tensor b = mark_sharding(vector_of({1, 2}), right, P("x"));
  Tensor c = a + b;
  EXPECT_TRUE(throws_error(
      [&] { (void)c.to_host(); }, ErrorCode::kInvalidArgument,
      {"two different sets of devices", "mesh<x=2>", "devices=[2,3]",
       cat("lazy_evaluator_test.cc:", line), cat("lazy_evaluator_test.cc:", line + 1)}));
  EXPECT_THAT((a + 1).to_vector<float>(), ElementsAre(2, 3)) << "each alone is well";
}

TEST_F(Evaluating, TwoLoadsOfOneValue) {
  // A host value that two meshes use is placed on each.
  Tensor x = vector_of({1, 2});
  Tensor a = mark_sharding(vector_of({1, 2}), Mesh({{"x", 2}}, {0, 1}), P("x"));
  Tensor b = mark_sharding(vector_of({1, 2}), Mesh({{"x", 2}}, {2, 3}), P("x"));
  EXPECT_THAT((a + x).to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT((b + x).to_vector<float>(), ElementsAre(2, 4));
}

}  // namespace
}  // namespace meshard
