// Predictions of what moves inside loops, branches, checkpoints and manual functions: calculated by
// hand, and compared with the same program written out and with what the compiler does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "meshard/autodiff/grad.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/checkpoint.h"
#include "meshard/ops/collectives.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/trigonometric.h"

namespace meshard {
namespace {

using Kind = CollectiveKind;
using testing::HasSubstr;

const bool kBodiesInstalled = install_runtime();
const Mesh kBodiesMesh({{"data", 2}, {"model", 4}});

constexpr std::int64_t kDepth = 6;

// Kind, bytes of one execution, executions.
using MoveFacts = std::multiset<std::tuple<Kind, std::int64_t, std::int64_t>>;

MoveFacts facts_of(const Prediction& prediction) {
  MoveFacts all;
  for (const PredictedMove& move : prediction.moves)
    all.emplace(move.kind, move.bytes, move.executions);
  return all;
}

// With each execution on its own.
MoveFacts written_out(const MoveFacts& facts) {
  MoveFacts all;
  for (const auto& [kind, bytes, executions] : facts)
    for (std::int64_t i = 0; i < executions; ++i) all.emplace(kind, bytes, 1);
  return all;
}

Tensor on_mesh(Shape shape, const PartitionSpec& spec) {
  return abstract_tensor(std::move(shape), DType::f32, kBodiesMesh, spec);
}

class PredictBodies : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kBodiesInstalled); }

  // Compares with the collectives of the compiled program.
  template <class F, class... Arguments>
  static void check_compiled(const Prediction& prediction, const F& f,
                             const Arguments&... arguments) {
    if (!why_no_plugin().empty()) return;
    ProgramReport report = explain(Target::parse("cpu:8").value(), f, arguments...);
    MoveFacts compiled;
    for (const Collective& one : report.collectives())
      compiled.emplace(one.kind, one.bytes(), one.executions);
    EXPECT_EQ(facts_of(prediction), compiled) << prediction.to_string() << report.to_string();
  }

  // A layer of two products: the first split by columns, the second by rows.
  static Tensor mlp(const Tensor& x, const Tensor& v, const Tensor& w) {
    return add(x, matmul(tanh(matmul(x, v)), w));
  }
  static Tensor scanned(const Tensor& x, const Tensor& v, const Tensor& w) {
    return scan(
               [](Tensor carry, std::pair<Tensor, Tensor> layer) {
                 return std::pair(mlp(carry, layer.first, layer.second), Tensor(carry));
               },
               x, std::pair(v, w))
        .first;
  }

  Tensor x = on_mesh({16, 32}, P("data", none));
  Tensor v = on_mesh({kDepth, 32, 64}, P(none, none, "model"));
  Tensor w = on_mesh({kDepth, 64, 32}, P(none, "model", none));
  static constexpr std::int64_t kSumOfRows = 16 / 2 * 32 * 4;
};

TEST_F(PredictBodies, AScanOverLayers) {
  Prediction p = predict(scanned, x, v, w);
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllReduce);
  EXPECT_EQ(p.moves[0].axes, AxisList({"model"}));
  EXPECT_EQ(p.moves[0].bytes, kSumOfRows);
  EXPECT_EQ(p.moves[0].executions, kDepth);
  EXPECT_EQ(p.moves[0].origin.op, "dot_general");
  EXPECT_THAT(p.moves[0].origin.place, HasSubstr("predict_bodies_test.cc:"));
  EXPECT_THAT(p.to_string(), HasSubstr(" x 6"));
  EXPECT_EQ(p.bytes(), kDepth * kSumOfRows);
  EXPECT_EQ(p.results[0]->spec(), P("data", none));
  EXPECT_TRUE(p.notes.empty()) << p.to_string();
  check_compiled(p, scanned, x, v, w);
}

TEST_F(PredictBodies, AScanIsPredictedLikeTheLayersWrittenOut) {
  auto unrolled = [](Tensor y, const std::vector<Tensor>& vs, const std::vector<Tensor>& ws) {
    for (std::size_t i = 0; i < vs.size(); ++i) y = mlp(y, vs[i], ws[i]);
    return y;
  };
  using Dimension = DimensionSpec;
  for (const Dimension& rows : {Dimension("data"), Dimension(none)})
    for (const Dimension& hidden : {Dimension("model"), Dimension("data"), Dimension(none)}) {
      Tensor given = on_mesh({16, 32}, P(rows, none));
      Tensor stacked_v = on_mesh({kDepth, 32, 64}, P(none, none, hidden));
      Tensor stacked_w = on_mesh({kDepth, 64, 32}, P(none, hidden, none));
      std::vector<Tensor> vs(kDepth, on_mesh({32, 64}, P(none, hidden)));
      std::vector<Tensor> ws(kDepth, on_mesh({64, 32}, P(hidden, none)));
      Prediction one = predict(scanned, given, stacked_v, stacked_w);
      Prediction all = predict(unrolled, given, vs, ws);
      EXPECT_EQ(written_out(facts_of(one)), facts_of(all)) << one.to_string() << all.to_string();
      EXPECT_EQ(one.bytes(), all.bytes());
    }
}

// The slice of a layer may be split further than the stacked weights: the compiler cuts it, and
// sums the products.
TEST_F(PredictBodies, SlicesAreOpen) {
  Tensor whole = on_mesh({kDepth, 64, 32}, P(none, none, none));
  Prediction p = predict(scanned, x, v, whole);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, kSumOfRows, kDepth}})) << p.to_string();
  check_compiled(p, scanned, x, v, whole);
}

TEST_F(PredictBodies, TheGradientOfAScan) {
  auto gradient = grad([](std::pair<Tensor, Tensor> weights, Tensor y) {
    return sum(scanned(y, weights.first, weights.second));
  });
  Prediction p = predict(gradient, std::pair(v, w), x);
  // Forward and backward, each layer sums what the axis "model" splits. The gradients of the
  // weights are summed over "data", in each layer.
  MoveFacts expected{{Kind::kAllReduce, kSumOfRows, kDepth},
                     {Kind::kAllReduce, kSumOfRows, kDepth},
                     {Kind::kAllReduce, 32 * 64 / 4 * 4, kDepth},
                     {Kind::kAllReduce, 32 * 64 / 4 * 4, kDepth}};
  EXPECT_EQ(facts_of(p), expected) << p.to_string();
  if (!why_no_plugin().empty()) return;
  // The compiler sums the gradients of both weights together.
  std::int64_t compiled = 0;
  ProgramReport report = explain(Target::parse("cpu:8").value(), gradient, std::pair(v, w), x);
  for (const Collective& one : report.collectives()) {
    EXPECT_EQ(one.executions, kDepth);
    compiled += one.total_bytes();
  }
  EXPECT_EQ(p.bytes(), compiled);
}

TEST_F(PredictBodies, LoopsInLoops) {
  auto nested = [](const Tensor& y, const Tensor& a, const Tensor& b) {
    return scan(
               [&](Tensor outer, std::tuple<>) {
                 Tensor inner = scanned(outer, a, b);
                 return std::pair(tanh(inner), std::tuple<>());
               },
               y, std::tuple<>(), {.length = 3})
        .first;
  };
  Prediction p = predict(nested, x, v, w);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, kSumOfRows, 3 * kDepth}})) << p.to_string();
  check_compiled(p, nested, x, v, w);
}

TEST_F(PredictBodies, AWhileLoopOfUnknownLength) {
  auto grow = [](const Tensor& y, const Tensor& a, const Tensor& b) {
    return while_loop([](Tensor c) { return less(sum(multiply(c, c)), 100); },
                      [&](Tensor c) { return mlp(c, a, b); }, y);
  };
  Tensor one = on_mesh({32, 64}, P(none, "model")), two = on_mesh({64, 32}, P("model", none));
  Prediction p = predict(grow, x, one, two);
  // The sum of the condition, and of the layer.
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, 4, 1}, {Kind::kAllReduce, kSumOfRows, 1}}))
      << p.to_string();
  for (const PredictedMove& move : p.moves) EXPECT_FALSE(move.executions_known);
  EXPECT_THAT(p.to_string(), HasSubstr("per iteration of a loop of unknown length"));
  check_compiled(p, grow, x, one, two);
}

TEST_F(PredictBodies, OfAllBranchesTheOneThatMovesTheMost) {
  auto choose = [](const Tensor& i, const Tensor& y, const Tensor& a, const Tensor& b) {
    return switch_case(i,
                       {[](const Tensor& t) { return tanh(t); },
                        [&](const Tensor& t) { return mlp(mlp(t, a, b), a, b); },
                        [&](const Tensor& t) { return mlp(t, a, b); }},
                       y);
  };
  Tensor i = abstract_tensor({}, DType::i32);
  Tensor one = on_mesh({32, 64}, P(none, "model")), two = on_mesh({64, 32}, P("model", none));
  Prediction p = predict(choose, i, x, one, two);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, kSumOfRows, 1},
                                    {Kind::kAllReduce, kSumOfRows, 1},
                                    {Kind::kAllReduce, kSumOfRows, 1}}))
      << p.to_string();
  EXPECT_EQ(p.bytes(), 2 * kSumOfRows);
  for (const PredictedMove& move : p.moves) EXPECT_TRUE(move.conditional);
  EXPECT_THAT(p.to_string(), HasSubstr("if its branch is taken"));
  check_compiled(p, choose, i, x, one, two);
}

TEST_F(PredictBodies, AConditionInALoop) {
  auto often = [](const Tensor& y, const Tensor& a, const Tensor& b) {
    return scan(
               [](Tensor c, std::pair<Tensor, Tensor> layer) {
                 Tensor next = cond(
                     greater(sum(c), 0), [](Tensor t, Tensor s, Tensor u) { return mlp(t, s, u); },
                     [](Tensor t, Tensor, Tensor) { return t; }, c, layer.first, layer.second);
                 return std::pair(next, std::tuple<>());
               },
               y, std::pair(a, b))
        .first;
  };
  Prediction p = predict(often, x, v, w);
  EXPECT_EQ(facts_of(p),
            (MoveFacts{{Kind::kAllReduce, 4, kDepth}, {Kind::kAllReduce, kSumOfRows, kDepth}}))
      << p.to_string();
  EXPECT_EQ(p.bytes(), kDepth * (4 + kSumOfRows));
  check_compiled(p, often, x, v, w);
}

TEST_F(PredictBodies, ACheckpoint) {
  auto kept = [](const Tensor& y, const Tensor& a, const Tensor& b) {
    return checkpoint([](Tensor t, Tensor s, Tensor u) { return mlp(t, s, u); })(y, a, b);
  };
  Tensor one = on_mesh({32, 64}, P(none, "model")), two = on_mesh({64, 32}, P("model", none));
  Prediction p = predict(kept, x, one, two);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, kSumOfRows, 1}})) << p.to_string();
  check_compiled(p, kept, x, one, two);
}

TEST_F(PredictBodies, AMarkInABody) {
  auto turned = [](const Tensor& y) {
    return scan(
               [](Tensor c, std::tuple<>) {
                 Tensor columns = mark_sharding(tanh(c), kBodiesMesh, P(none, "data"));
                 return std::pair(mark_sharding(columns, kBodiesMesh, P("data", none)),
                                  std::tuple<>());
               },
               y, std::tuple<>(), {.length = 5})
        .first;
  };
  Prediction p = predict(turned, x);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllToAll, 16 * 32 * 4 / 2, 5},
                                    {Kind::kAllToAll, 16 * 32 * 4 / 2, 5}}))
      << p.to_string();
  for (const PredictedMove& move : p.moves) EXPECT_EQ(move.who, CollectiveCause::kAsked);
  check_compiled(p, turned, x);
}

TEST_F(PredictBodies, AManualFunction) {
  auto by_hand = [](const Tensor& y, const Tensor& a) {
    return manual(
        kBodiesMesh, {P("data", "model"), P("model", none)}, P("data", none),
        [](const Tensor& t, const Tensor& u) { return all_reduce(matmul(t, u), "model"); })(y, a);
  };
  Tensor columns = on_mesh({16, 32}, P("data", "model")), rows = on_mesh({32, 64}, P("model"));
  Prediction p = predict(by_hand, columns, rows);
  ASSERT_EQ(p.moves.size(), 1u) << p.to_string();
  EXPECT_EQ(p.moves[0].kind, Kind::kAllReduce);
  EXPECT_EQ(p.moves[0].axes, AxisList({"model"}));
  EXPECT_EQ(p.moves[0].bytes, 8 * 64 * 4);
  EXPECT_EQ(p.moves[0].who, CollectiveCause::kAsked);
  EXPECT_EQ(p.moves[0].origin.op, "all_reduce");
  EXPECT_EQ(p.results[0]->spec(), P("data", none));
  EXPECT_TRUE(p.notes.empty()) << p.to_string();
  check_compiled(p, by_hand, columns, rows);
  // An argument that is split differently is exchanged where it enters.
  Prediction moved = predict(by_hand, columns, on_mesh({32, 64}, P(none, "model")));
  EXPECT_EQ(facts_of(moved),
            (MoveFacts{{Kind::kAllToAll, 32 * 64 * 4 / 4, 1}, {Kind::kAllReduce, 8 * 64 * 4, 1}}))
      << moved.to_string();
  check_compiled(moved, by_hand, columns, on_mesh({32, 64}, P(none, "model")));
}

TEST_F(PredictBodies, AManualFunctionInALoop) {
  auto rounds = [](const Tensor& y) {
    return scan(
               [](Tensor c, std::tuple<>) {
                 auto total =
                     manual(kBodiesMesh, P("data"), P("data"),
                            [](const Tensor& t) { return add(tanh(all_reduce(t, "data")), t); },
                            {.axes = {"data"}});
                 return std::pair(total(c), std::tuple<>());
               },
               y, std::tuple<>(), {.length = 4})
        .first;
  };
  // The compiler shards what is local over "model".
  Tensor both = on_mesh({16, 32}, P("data", "model"));
  Prediction p = predict(rounds, both);
  EXPECT_EQ(facts_of(p), (MoveFacts{{Kind::kAllReduce, 8 * 8 * 4, 4}})) << p.to_string();
  check_compiled(p, rounds, both);
}

}  // namespace
}  // namespace meshard
