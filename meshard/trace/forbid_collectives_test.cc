// ForbidCollectives with real ops: products, reductions, reshards, derivatives, manual functions
// and jitted ones.
#include "meshard/graph/forbid_collectives.h"

#include <gtest/gtest.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/trace/evaluator_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

constexpr AxisKind kTypedAxis = AxisKind::kExplicit;

Mesh quiet_mesh() { return Mesh({{"data", 2, kTypedAxis}, {"model", 4, kTypedAxis}}); }

Tensor typed(const PartitionSpec& spec, Shape shape = {8, 16}) {
  return make_parameter({DType::f32, std::move(shape)}, Sharding(quiet_mesh(), spec),
                        {"params.cc", "f", 1});
}

// True if the call is an error only because of what it moves over "model".
template <class Call>
testing::AssertionResult moves_over_model(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return testing::AssertionFailure() << "without the scope: " << error.what();
  }
  ForbidCollectives quiet({"model"});
  return throws_error(call, ErrorCode::kInvalidArgument,
                      {"communicates over axis \"model\"", "forbid_collectives_test.cc:"});
}

class ForbiddenOps : public testing::Test {
 protected:
  internal::TraceScope scope_;
};

TEST_F(ForbiddenOps, Communicate) {
  const Tensor x = typed(P("data", "model")), rows = typed(P("model", none));
  const Tensor w = typed(P(none, none), {16, 16}), split = typed(P("model", none), {16, 16});
  const Mesh mesh = quiet_mesh();
  EXPECT_TRUE(moves_over_model([&] { sum(x, 1); }));
  EXPECT_TRUE(moves_over_model([&] { max(x, 1); }));
  EXPECT_TRUE(moves_over_model([&] { matmul(x, w); }));
  EXPECT_TRUE(moves_over_model([&] { matmul(x, split, Sharding(mesh, P("data", none))); }));
  EXPECT_TRUE(moves_over_model([&] { mark_sharding(x, mesh, P("data", none)); }));
  EXPECT_TRUE(moves_over_model([&] { mark_sharding(x, mesh, P({"data", "model"}, none)); }));
  EXPECT_TRUE(moves_over_model([&] { slice(rows, {0, 0}, {4, 16}); }));
  EXPECT_TRUE(moves_over_model([&] { flip(x, 1); }));
}

TEST_F(ForbiddenOps, OthersDoNot) {
  const Tensor x = typed(P("data", "model")), w = typed(P(none, "model"), {16, 16});
  const Mesh mesh = quiet_mesh();
  ForbidCollectives quiet({"model"});
  tanh(x) + x * 2;
  sum(x, 0);
  matmul(typed(P("data", none)), w);
  permute_dims(x);
  reshape(x, {8, 4, 4});
  mark_sharding(typed(P("data", none)), mesh, P("data", "model"));
  mark_sharding(x, mesh, P(none, "model"));
  x + ones({8, 16});
  // What fails without the scope fails with it: the dimension is needed whole.
  EXPECT_TRUE(throws_error([&] { sort(x, 1); }, ErrorCode::kInvalidArgument, {"unsplit"}));
}

TEST_F(ForbiddenOps, DerivativesAreOps) {
  const Tensor x = typed(P("model", none), {8, 16}), w = typed(P(none, none), {16, 16});
  auto loss = [&](Tensor weights) { return sum(matmul(x, weights)); };
  // The loss sums over the rows, too; the derivative with respect to the weights does so itself.
  EXPECT_TRUE(moves_over_model([&] { grad(loss)(w); }));
  EXPECT_TRUE(moves_over_model([&] {
    vjp([&](Tensor weights) { return matmul(x, weights); }, w).second(typed(P("model", none)));
  }));
}

TEST_F(ForbiddenOps, ManualFunctions) {
  Mesh automatic({{"data", 2}, {"model", 4}});
  Tensor x = make_parameter({DType::f32, {8, 16}}, Sharding(automatic, P("data", "model")), {});
  auto reduced = [&](const char* axis) {
    PartitionSpec out = axis == std::string("data") ? P(none, "model") : P("data", none);
    manual(automatic, P("data", "model"), out,
           [&](Tensor part) { return all_reduce(tanh(part), axis); })(x);
  };
  reduced("model");
  ForbidCollectives quiet({"model"});
  reduced("data");
  EXPECT_TRUE(throws_error(
      [&] { reduced("model"); }, ErrorCode::kInvalidArgument,
      {"[all_reduce] communicates over axis \"model\"", "forbid_collectives_test.cc:"}));
  // A value that is split otherwise is resharded at the entry.
  EXPECT_TRUE(throws_error(
      [&] {
        manual(automatic, P("model", "data"), P("model", "data"),
               [](Tensor part) { return tanh(part); })(x);
      },
      ErrorCode::kInvalidArgument,
      {"communicates over axis \"model\"", "dimension 1 of operand 0"}));
  EXPECT_TRUE(throws_error([&] { tanh(x); }, ErrorCode::kInvalidArgument,
                           {"automatic axis \"model\"", "with_axis_kind"}));
}

TEST_F(ForbiddenOps, BodiesOfLoops) {
  const Tensor x = typed(P("data", "model"));
  EXPECT_TRUE(moves_over_model([&] {
    fori_loop(
        0, 3,
        [](Tensor, Tensor carry) {
          Tensor gathered = mark_sharding(carry, quiet_mesh(), P("data", none));
          return carry + mark_sharding(gathered, quiet_mesh(), P("data", "model"));
        },
        x);
  }));
}

TEST(ForbiddenCalls, JittedFunctionsAreRecordedAgain) {
  test::RecordingEvaluator& evaluator = test::RecordingEvaluator::install();
  Tensor x = abstract_tensor({8, 16}, DType::f32, quiet_mesh(), P("data", "model"));
  auto step = jit([](Tensor v) { return sum(tanh(v), 1); });
  auto silent = jit([](Tensor v) { return tanh(v); });
  (void)step(x);
  (void)silent(x);
  const std::size_t compiled = evaluator.programs.size(), runs = evaluator.runs;
  ForbidCollectives quiet({"model"});
  EXPECT_TRUE(throws_error([&] { (void)step(x); }, ErrorCode::kInvalidArgument,
                           {"[sum] communicates over axis \"model\"", "reduces over"}));
  (void)silent(x);
  EXPECT_EQ(evaluator.programs.size(), compiled) << "nothing is compiled again";
  EXPECT_EQ(evaluator.runs, runs + 1);
}

}  // namespace
}  // namespace meshard
