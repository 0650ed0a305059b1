// Predictions: clear cases calculated by hand, and comparisons with what the compiler then does.
#include "meshard/explain/predict/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "meshard/autodiff/grad.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/composite/softmax.h"
#include "meshard/ops/cumulative.h"
#include "meshard/ops/custom_call.h"
#include "meshard/ops/linalg.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/sort.h"
#include "meshard/ops/trigonometric.h"
#include "meshard/runtime/counters.h"

namespace meshard {
namespace {

using Kind = CollectiveKind;
using testing::HasSubstr;

const bool kPredictInstalled = install_runtime();
const Mesh kPredictMesh({{"data", 2}, {"model", 4}});

// The values are not placed, so only the comparisons with the compiler need devices.
class Predict : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kPredictInstalled);
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
  }
  static Tensor placed(Shape shape, const PartitionSpec& spec) {
    return mark_sharding(from_host(HostArray::zeros({DType::f32, std::move(shape)})), kPredictMesh,
                         spec);
  }
  // Predicts, compiles, and compares the kinds and bytes of collectives.
  template <class F, class... Arguments>
  static Prediction check(const F& f, const Arguments&... arguments) {
    Prediction prediction = predict(f, arguments...);
    auto jitted = jit(f);
    (void)jitted(arguments...);
    std::multiset<std::pair<Kind, std::int64_t>> predicted, compiled;
    for (const PredictedMove& move : prediction.moves) predicted.emplace(move.kind, move.bytes);
    ProgramReport report = explain(jitted);
    for (const Collective& one : report.collectives()) compiled.emplace(one.kind, one.bytes());
    EXPECT_EQ(predicted, compiled) << prediction.to_string() << report.to_string();
    return prediction;
  }
};

std::string here(std::uint32_t line) { return cat("predict_test.cc:", line); }

TEST_F(Predict, ColumnThenRowParallel) {
  Prediction p = check([](Tensor x, Tensor v, Tensor w) { return matmul(tanh(matmul(x, v)), w); },
                       placed({16, 32}, P("data", none)), placed({32, 64}, P(none, "model")),
                       placed({64, 32}, P("model", none)));
  ASSERT_EQ(p.moves.size(), 1u);
  const PredictedMove& sum = p.moves[0];
  EXPECT_EQ(sum.kind, Kind::kAllReduce);
  EXPECT_EQ(sum.axes, AxisList({"model"}));
  EXPECT_EQ(sum.bytes, 16 / 2 * 32 * 4);
  EXPECT_EQ(sum.origin.op, "dot_general");
  EXPECT_EQ(sum.origin.place, here(__LINE__ - 9));
  EXPECT_THAT(sum.cause, HasSubstr("sums over a dimension that is split by {\"model\"}"));
  EXPECT_EQ(p.results[0]->spec().to_string(), R"(P("data", none))");
}

TEST_F(Predict, FullyShardedWeightsAreGathered) {
  Mesh one({{"data", 8}});
  Tensor x = mark_sharding(from_host(HostArray::zeros({DType::f32, {128, 32}})), one, P("data"));
  Tensor v = mark_sharding(from_host(HostArray::zeros({DType::f32, {32, 64}})), one, P("data"));
  Prediction p = check([](Tensor t, Tensor w) { return matmul(t, w); }, x, v);
  ASSERT_EQ(p.moves.size(), 1u);
  EXPECT_EQ(p.moves[0].kind, Kind::kAllGather);
  EXPECT_EQ(p.moves[0].bytes, 32 * 64 * 4);
  EXPECT_EQ(p.moves[0].from->spec(), P("data", none));
  EXPECT_EQ(p.moves[0].to->spec(), P(none, none));
  EXPECT_THAT(p.moves[0].suggestion, HasSubstr("mark it"));
}

TEST_F(Predict, NothingMoves) {
  Tensor x = placed({16, 32}, P("data", "model")), b = placed({32}, P("model"));
  EXPECT_TRUE(check([](Tensor t, Tensor c) { return add(tanh(t), c); }, x, b).moves.empty());
  EXPECT_EQ(
      predict([](Tensor t) { return tanh(t); }, from_host(HostArray::zeros({DType::f32, {4}})))
          .notes.size(),
      1u)
      << "without a mesh there is nothing to tell";
}

TEST_F(Predict, ASoftmaxOverASplitDimension) {
  Prediction p =
      check([](Tensor x) { return softmax(x, 1); }, placed({16, 32}, P("data", "model")));
  ASSERT_EQ(p.moves.size(), 2u);  // the maximum and the sum
  for (const PredictedMove& move : p.moves) EXPECT_EQ(move.bytes, 16 / 2 * 4);
}

TEST_F(Predict, AMarkThatNeedsTheWholeValue) {
  std::uint32_t line = __LINE__ + 1;
  Prediction p = check([](Tensor x) { return mark_sharding(x, kPredictMesh, P(none, "model")); },
                       placed({16, 32}, P("data", none)));
  ASSERT_EQ(p.moves.size(), 1u);
  EXPECT_TRUE(p.moves[0].full_rematerialization);
  EXPECT_EQ(p.moves[0].bytes, 16 * 32 * 4);
  EXPECT_EQ(p.moves[0].who, CollectiveCause::kAsked);
  EXPECT_EQ(p.moves[0].origin.place, here(line));
  EXPECT_THAT(p.to_string(), HasSubstr("the whole value on every device"));
  EXPECT_THAT(p.to_string(), HasSubstr("in two steps"));
  // In two steps, no device needs the whole value.
  Prediction two = check(
      [](Tensor x) {
        return mark_sharding(mark_sharding(x, kPredictMesh, P(none, "data")), kPredictMesh,
                             P(none, "model"));
      },
      placed({16, 32}, P("data", none)));
  for (const PredictedMove& move : two.moves) EXPECT_FALSE(move.full_rematerialization);
}

TEST_F(Predict, AReshapeThatCannotKeepItsSplit) {
  Prediction p = check([](Tensor x) { return tanh(reshape(x, Shape{512})); },
                       placed({16, 32}, P(none, "model")));
  ASSERT_EQ(p.moves.size(), 1u);
  EXPECT_EQ(p.moves[0].kind, Kind::kAllGather);
  EXPECT_EQ(p.moves[0].origin.op, "reshape");
  EXPECT_THAT(p.moves[0].cause, HasSubstr("would not be contiguous"));
}

// The module has the padding of uneven arguments and results, which stays where it is.
TEST_F(Predict, UnevenSizes) {
  EXPECT_TRUE(
      check([](Tensor x) { return tanh(x); }, placed({10, 32}, P("model", none))).moves.empty());
  EXPECT_TRUE(check([](Tensor x) { return mark_sharding(tanh(x), kPredictMesh, P("model", none)); },
                    placed({10, 32}, P("model", none)))
                  .moves.empty());
  Prediction p = check([](Tensor x, Tensor w) { return matmul(x, w); },
                       placed({10, 30}, P("data", "model")), placed({30, 6}, P("model", none)));
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllReduce);
  EXPECT_EQ(p.moves[0].bytes, 5 * 6 * 4);
}

TEST_F(Predict, ADimensionThatIsNeededWhole) {
  Prediction p = predict([](Tensor x) { return sort(x, 1); }, placed({16, 32}, P(none, "model")));
  ASSERT_EQ(p.moves.size(), 1u);
  EXPECT_THAT(p.moves[0].cause, HasSubstr("sort needs all of dimension 1 of operand 0"));
}

// The partitioner gathers all operands of a custom call.
TEST_F(Predict, ACustomCallTakesTheWholeValue) {
  Prediction p = predict([](Tensor x) { return custom_call("some_call", {x}, {x.type()})[0]; },
                         placed({8, 16, 16}, P("data", "model", none)));
  EXPECT_EQ(p.of(Kind::kAllGather).size(), 2u) << p.to_string();
}

TEST_F(Predict, ADecompositionTakesWholeMatricesOfItsOwnBatch) {
  Prediction p = check([](Tensor x) { return linalg::svdvals(x); },
                       placed({8, 16, 16}, P("data", "model", none)));
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllGather);
  EXPECT_EQ(p.moves[0].bytes, 8 * 16 * 16 * 4 / 2);
}

TEST_F(Predict, ShiftedElementsCrossBorders) {
  Prediction p = predict([](Tensor x) { return cumulative_sum(x, 1); },
                         placed({8, 16, 16}, P("data", "model", none)));
  EXPECT_FALSE(p.moves.empty());
  EXPECT_EQ(p.moves.size(), p.of(Kind::kCollectivePermute).size()) << p.to_string();
}

TEST_F(Predict, OperandsThatDisagree) {
  Prediction p = check([](Tensor x, Tensor y) { return add(x, y); },
                       placed({16, 32}, P("data", none)), placed({16, 32}, P(none, "data")));
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllToAll);
  EXPECT_EQ(p.moves[0].bytes, 16 * 32 * 4 / 2);
}

TEST_F(Predict, AValueIsMovedOnceForAllThatNeedIt) {
  Prediction p = predict(
      [](Tensor x, Tensor w) {
        return std::vector{matmul(x, w), matmul(tanh(x), w)};
      },
      placed({16, 32}, P("data", none)), placed({32, 64}, P("data", none)));
  EXPECT_EQ(p.of(Kind::kAllGather).size(), 1u) << p.to_string();
}

TEST_F(Predict, GradientsOfDataParallelTraining) {
  auto loss = [](Tensor w, Tensor x) { return sum(tanh(matmul(x, w))); };
  Prediction p =
      check(grad(loss), placed({32, 64}, P(none, none)), placed({16, 32}, P("data", none)));
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllReduce);
  EXPECT_EQ(p.moves[0].axes, AxisList({"data"}));
  EXPECT_EQ(p.moves[0].bytes, 32 * 64 * 4);
}

TEST_F(Predict, NothingIsCompiled) {
  Tensor x = placed({16, 32}, P("data", none));
  RuntimeCounters before = runtime_counters();
  (void)predict([](Tensor t) { return sum(t); }, x);
  EXPECT_EQ(runtime_counters() - before, RuntimeCounters());
}

// Every pair of operand shardings of a product over two axes. The bound is the number of
// predictions that matched the compiler when this was written; with fewer, the prediction has
// become worse.
TEST_F(Predict, MostProducts) {
  std::vector<DimensionSpec> dimensions{none, "data", "model"};
  int agreed = 0, all = 0;
  for (const DimensionSpec& a : dimensions)
    for (const DimensionSpec& b : dimensions)
      for (const DimensionSpec& c : dimensions)
        for (const DimensionSpec& d : dimensions) {
          if ((a == b && a != DimensionSpec()) || (c == d && c != DimensionSpec())) continue;
          Tensor x = placed({32, 48}, P(a, b)), w = placed({48, 32}, P(c, d));
          auto f = [](Tensor t, Tensor u) { return matmul(t, u); };
          auto jitted = jit(f);
          (void)jitted(x, w);
          std::multiset<std::pair<Kind, std::int64_t>> predicted, compiled;
          for (const PredictedMove& move : predict(f, x, w).moves)
            predicted.emplace(move.kind, move.bytes);
          ProgramReport report = explain(jitted);
          for (const Collective& one : report.collectives())
            compiled.emplace(one.kind, one.bytes());
          ++all;
          if (predicted == compiled) ++agreed;
        }
  EXPECT_EQ(all, 49);
  EXPECT_GE(agreed, 41);
  RecordProperty("agreed", agreed);
  std::cout << agreed << " of " << all << " products predicted exactly\n";
}

}  // namespace
}  // namespace meshard
