#include "meshard/explain/check_sharded.h"

#include <gtest/gtest.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {
namespace {

using Checking = OnPlugin;

const Mesh kEight({{"data", 2}, {"model", 4}});

Tensor ramp(Shape shape) { return reshape(astype(arange(shape.size()), DType::f32) / 7, shape); }

// What sometimes_add adds when it is lowered: the first time, the second time, ...; 0 after that.
// check_sharded() runs the sharded program first, then the unsharded one, and both again with all
// tensors as results. A fault of the partitioner would look as if the first and third were wrong.
std::vector<double> added;
int lowered = 0;

constinit const OpDef sometimes_add_op = {
    .name = "sometimes_add",
    .operands = "x",
    .infer = [](const OpCall& call, ResultTypes& results) { results.push_back(call.operand(0)); },
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          auto turn = static_cast<std::size_t>(lowered++);
          TensorType scalar{call.operand(0).dtype, Shape{}};
          auto number = out.writer.scalar(scalar.dtype, turn < added.size() ? added[turn] : 0);
          auto everywhere = out.writer.temporary();
          out.writer
              .op("stablehlo.broadcast_in_dim", {{everywhere, call.operand(0)}}, {{number, scalar}})
              .i64_array("broadcast_dimensions", Dimensions{})
              .done();
          out.writer
              .op("stablehlo.add", out.results, {out.operands[0], {everywhere, call.operand(0)}},
                  out.location)
              .done();
        },
};

TEST_F(Checking, EqualProgramsAgree) {
  Tensor x = mark_sharding(ramp({6, 5}), kEight, P("data", none));
  Tensor w = mark_sharding(ramp({5, 7}), kEight, P(none, "model"));
  auto loss = [](Tensor a, Tensor b) { return mean(square(tanh(matmul(b, a)))); };
  ShardedCheck check = check_sharded(value_and_grad(loss), w, x);
  EXPECT_TRUE(check.ok()) << check.to_string();
  EXPECT_EQ(check.compared, 2u);
  EXPECT_NE(check.to_string().find("2 results agree"), std::string::npos);
}

TEST_F(Checking, NumbersIntegersAndArgumentsAsTheyAre) {
  Tensor x = mark_sharding(arange(8), kEight, P("model"));
  ShardedCheck check = check_sharded(
      [](Tensor a, Tensor n) {
        return std::vector{a, a * 3, astype(a, DType::f32) * n};
      },
      x, 2.5);
  EXPECT_TRUE(check.ok()) << check.to_string();
  EXPECT_EQ(check.compared, 3u);
  EXPECT_EQ(check.ulps, 0);
}

TEST_F(Checking, TheFirstTensorThatDiffersIsNamed) {
  Tensor x = mark_sharding(ramp({8}), kEight, P("model"));
  added = {3, 0, 3, 0};
  lowered = 0;
  std::uint32_t line = __LINE__ + 3;
  auto faulty = [](Tensor a) {
    Tensor before = exp(a);
    Tensor wrong = record(sometimes_add_op, nullptr, {&before}, SourceLocation::current());
    return sum(tanh(wrong * 2));
  };
  ShardedCheck check = check_sharded(faulty, x);
  ASSERT_FALSE(check.ok());
  const ShardedDifference& found = *check.difference;
  EXPECT_EQ(found.tensor, "sometimes_add");
  EXPECT_EQ(found.where.line, line);
  EXPECT_EQ(found.type, (TensorType{DType::f32, {8}}));
  EXPECT_NEAR(found.sharded - found.unsharded, 3, 1e-5);
  EXPECT_GT(found.ulps, 1e6);
  EXPECT_NE(check.to_string().find("check_sharded_test.cc:"), std::string::npos);
}

// Distributed sums of 25,088 terms, divided by their deviation: 228 ULPs of f32, and 26 of f64, are
// rounding.
TEST_F(Checking, LongSumsAreRoundedAndNotWrong) {
  Mesh mesh({{"data", 4}, {"model", 2}});
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    Tensor x =
        mark_sharding(random::normal(random::key(1), {32, 28, 28, 1}, dtype), mesh, P("data"));
    Tensor k = mark_sharding(random::normal(random::key(2), {3, 3, 1, 8}, dtype), mesh,
                             P(none, none, none, "model"));
    Tensor s = ones({8}, dtype), b = zeros({8}, dtype);
    auto layer = [](Tensor image, Tensor kernel, Tensor scale, Tensor bias) {
      return batch_norm(conv2d(image, kernel, {.padding = Padding::kSame}), scale, bias);
    };
    ShardedCheck check = check_sharded(layer, x, k, s, b);
    EXPECT_TRUE(check.ok()) << dtype << " " << check.to_string();
    if (dtype == DType::f32) {
      EXPECT_GT(check.ulps, 16);  // else the test shows nothing
      EXPECT_FALSE(check_sharded({.max_ulps = 16}, layer, x, k, s, b).ok());
    }
  }
}

TEST_F(Checking, ACancelledSumIsRoundedAndNotWrong) {
  Tensor x = mark_sharding(random::normal(random::key(1), {1 << 16}), kEight, P("model"));
  auto cancelled = [](Tensor v) { return (sum(v * v) - sum(v * v + v)) + sum(v); };
  ShardedCheck check = check_sharded(cancelled, x);
  EXPECT_TRUE(check.ok()) << check.to_string();
  Tensor a = mark_sharding(random::normal(random::key(3), {16, 4096}), kEight, P(none, "model"));
  Tensor b = mark_sharding(random::normal(random::key(4), {4096, 16}), kEight, P("model", none));
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    auto products = [&](Tensor v, Tensor w) {
      Tensor first = astype(v, dtype);
      return matmul(matmul(first, astype(w, dtype)), slice(first, {0, 0}, {16, 64}));
    };
    check = check_sharded(products, a, b);
    EXPECT_TRUE(check.ok()) << dtype << " " << check.to_string();
  }
}

// As if one of eight devices were missing from a sum of 4096 random terms, of which 512 add up to
// about 23: less than that is found.
TEST_F(Checking, AMissingShardOfALongSumIsFound) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Tensor x = mark_sharding(random::normal(random::key(3), {16, 4096}, dtype), kEight,
                             P(none, {"data", "model"}));
    Tensor w = mark_sharding(random::normal(random::key(4), {4096, 16}, dtype), kEight,
                             P({"data", "model"}, none));
    added = {-20, 0, -20, 0};
    lowered = 0;
    ShardedCheck check = check_sharded(
        [](Tensor v, Tensor u) {
          Tensor product = matmul(v, u);
          return record(sometimes_add_op, nullptr, {&product}, SourceLocation::current()) / 64;
        },
        x, w);
    ASSERT_FALSE(check.ok()) << dtype;
    EXPECT_EQ(check.difference->tensor, "sometimes_add");
  }
}

}  // namespace
}  // namespace meshard
