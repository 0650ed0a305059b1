#include "meshard/graph/effects.h"

#include <gtest/gtest.h>

#include "meshard/graph/body.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::internal {
namespace {

using test::plus;
using test::scale;

const TensorType kPair{DType::f32, {2}};

// An effect that shows in the program: it doubles the result.
EffectScope::Attach doubling() {
  return [](const Tensor& x) { return scale(x, 2); };
}

TEST(EffectScope, TheInnermostOfTheTraceThatIsRecorded) {
  EXPECT_EQ(EffectScope::current(), nullptr);
  EffectScope lazy;
  EXPECT_EQ(EffectScope::current(), &lazy);
  internal::TraceScope trace;
  EXPECT_EQ(EffectScope::current(), nullptr);
  EffectScope outer, inner;
  EXPECT_EQ(EffectScope::current(), &inner);
}

TEST(EffectScope, AResultThatIsComputedNeedsTheEffects) {
  internal::TraceScope trace;
  Tensor x = make_parameter(kPair, std::nullopt, {}), y = plus(x, x);
  EffectScope scope;
  scope.add(doubling(), {});
  std::vector<Tensor> results = {x, y};
  scope.attach(results);
  EXPECT_EQ(results[0].value(), x.value());
  EXPECT_EQ(results[1].value()->operands()[0], y.value());
  scope.attach(results);  // nothing is left
  EXPECT_EQ(results[1].value()->operands()[0], y.value());
}

TEST(EffectScope, WithoutOtherResultsAParameterIsUsed) {
  internal::TraceScope trace;
  Tensor x = make_parameter(kPair, std::nullopt, {});
  EffectScope scope;
  scope.add(doubling(), {});
  std::vector<Tensor> results = {Tensor(), x};
  scope.attach(results);
  EXPECT_FALSE(results[0].defined());
  EXPECT_EQ(results[1].value()->operands()[0], x.value());
}

TEST(EffectScope, BodiesHaveTheirOwn) {
  TracedBody body = trace_body(std::vector<BodyInput>{{kPair}},
                               [&](std::span<const Tensor> x) {
                                 EffectScope::current()->add(doubling(), {});
                                 return std::vector<Tensor>{plus(x[0], x[0])};
                               },
                               std::nullopt, {});
  EXPECT_EQ(body.body.graph().nodes().size(), 2u);
}

TEST(EffectScope, AFunctionMustReturnATensor) {
  EffectScope scope;
  scope.add(doubling(), {});
  std::vector<Tensor> results;
  EXPECT_TRUE(throws_error([&] { scope.attach(results); }, ErrorCode::kInvalidArgument,
                           {"returns no tensor"}));
}

}  // namespace
}  // namespace meshard::internal
