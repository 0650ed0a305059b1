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

// Adds 3 in the sharded run and 0 in the unsharded one, because every second lowering adds 0. A
// fault of the partitioner would look the same.
constinit const OpDef sometimes_add_op = {
    .name = "sometimes_add",
    .operands = "x",
    .infer = [](const OpCall& call, ResultTypes& results) { results.push_back(call.operand(0)); },
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          static int lowered = 0;
          TensorType scalar{call.operand(0).dtype, Shape{}};
          auto number = out.writer.scalar(scalar.dtype, lowered++ % 2 == 0 ? 3 : 0);
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

}  // namespace
}  // namespace meshard
