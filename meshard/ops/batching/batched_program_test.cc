#include "meshard/ops/batching/batched_program.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/exponential.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor batch_of_three() { return from_host(std::vector<float>{1, 2, 3}, {3}); }

TEST(BatchedProgram, OnlyWhatDependsOnAMemberIsRecordedAgain) {
  Tensor batch = batch_of_three(), one = batch_member(batch, SourceLocation::current());
  EXPECT_EQ(one.type(), (TensorType{DType::f32, {}}));
  Tensor shared = full({}, 10.0), product = multiply(one, shared), alone = add(shared, shared);
  std::vector<Tensor> out = batch_program(std::vector{product, alone, Tensor(), one},
                                          std::vector{one}, std::vector{batch}, {.size = 3});
  EXPECT_EQ(interpret(out[0]).to_vector<float>(), (std::vector<float>{10, 20, 30}));
  EXPECT_EQ(out[1].value(), alone.value()) << "no member is in it";
  EXPECT_FALSE(out[2].defined());
  EXPECT_EQ(out[3].value(), batch.value());
}

TEST(BatchedProgram, SharedNodesAreRecordedOnce) {
  Tensor batch = batch_of_three(), one = batch_member(batch, SourceLocation::current());
  Tensor e = exp(one);
  std::vector<Tensor> out =
      batch_program(std::vector{add(e, e), e}, std::vector{one}, std::vector{batch}, {.size = 3});
  EXPECT_EQ(out[0].value()->operands()[0], out[1].value());
  EXPECT_EQ(out[0].value()->operands()[1], out[1].value());
}

// A chain so long that a recursive walk would overflow the stack.
TEST(BatchedProgram, LongChainsAreBatched) {
  Tensor batch = batch_of_three(), one = batch_member(batch, SourceLocation::current()), x = one;
  for (int i = 0; i < 200'000; ++i) x = add(x, one);
  Tensor out = batch_program(std::vector{x}, std::vector{one}, std::vector{batch}, {.size = 3})[0];
  EXPECT_EQ(out.shape(), Shape({3}));
}

TEST(BatchedProgram, CallsRepeatWhatMembersShare) {
  std::vector<Tensor> operands{batch_of_three(), full({2}, 5.0)};
  const bool batched[] = {true, false};
  std::vector<Tensor> out = batch_call(
      [](std::span<const Tensor> x) {
        return std::vector<Tensor>{multiply(x[0], x[1]), x[1], Tensor()};
      },
      operands, batched, {.size = 3}, SourceLocation::current());
  EXPECT_EQ(interpret(out[0]).to_vector<float>(), (std::vector<float>{5, 5, 10, 10, 15, 15}));
  EXPECT_EQ(interpret(out[1]).to_vector<float>(), (std::vector<float>{5, 5, 5, 5, 5, 5}));
  EXPECT_FALSE(out[2].defined());
}

TEST(BatchedProgram, AnOpWithoutARuleIsNamed) {
  static constinit const OpDef kOdd{
      .name = "odd", .operands = "x", .infer = [](const OpCall& call, ResultTypes& results) {
        results.push_back(call.operand(0));
      }};
  Tensor batch = batch_of_three(), one = batch_member(batch, SourceLocation::current());
  Tensor odd = record(kOdd, nullptr, {&one}, SourceLocation::current());
  EXPECT_TRUE(throws_error(
      [&] { batch_program(std::vector{odd}, std::vector{one}, std::vector{batch}, {.size = 3}); },
      ErrorCode::kUnimplemented, {"[vmap] odd has no batching rule", "batched_program_test.cc:"}));
}

}  // namespace
}  // namespace meshard
