#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collective.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The names are those that JAX 0.10.2 writes.
TEST(OpScope, PhasesOfTraining) {
  EXPECT_EQ(phase_of_op("jit(step)/jvp(MLP)/b0_up/dot_general"), ProgramPhase::kForward);
  EXPECT_EQ(phase_of_op("jit(step)/transpose(jvp(MLP))/b0_up/dot_general"),
            ProgramPhase::kBackward);
  EXPECT_EQ(phase_of_op("jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/"
                        "rematted_computation/mlp/mul"),
            ProgramPhase::kBackward);
  EXPECT_EQ(phase_of_op("jit(step)/transpose"), ProgramPhase::kUnknown);
  EXPECT_EQ(phase_of_op("jit(step)/sub"), ProgramPhase::kUnknown);
  EXPECT_EQ(phase_of_op("p['w1']"), ProgramPhase::kUnknown);
}

TEST(OpScope, LayersAreNamedScopes) {
  EXPECT_EQ(op_scope("jit(step)/jvp(MLP)/b0_up/dot_general"), "MLP/b0_up");
  EXPECT_EQ(op_scope("jit(step)/transpose(jvp(MLP))/b0_up/dot_general"), "MLP/b0_up");
  EXPECT_EQ(op_scope("jit(step)/jvp(layer0)/attn/btd,dhk->bthk/dot_general"), "layer0/attn");
  EXPECT_EQ(op_scope("jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/"
                     "rematted_computation/mlp/mul"),
            "mlp");
  EXPECT_EQ(op_scope("jit(step)/vmap(transpose(jvp(net/head)))/dot_general"), "net/head");
}

TEST(OpScope, FunctionsAndConstructsAreNoLayers) {
  EXPECT_EQ(op_scope("jit(step)/jvp(jit(take_along_axis))/gather"), "");
  EXPECT_EQ(op_scope("jit(step)/jvp(MLP)/jit(relu)/max"), "MLP");
  EXPECT_EQ(op_scope("jit(step)/cond/branch_1_fun/add"), "");
  EXPECT_EQ(op_scope("jit(f)/shard_map/while/body/closed_call/ppermute"), "");
  EXPECT_EQ(op_scope("lower.<locals>.experts/reduce"), "");
  EXPECT_EQ(op_scope("n17"), "");
  EXPECT_EQ(op_scope(""), "");
}

TEST(OpScope, OpsOfBothPassesAreTheSameInTheirLayer) {
  std::string forward = op_in_layer("jit(step)/jvp()/while/body/attn/bthk,hkd->btd/dot_general");
  EXPECT_EQ(forward, "attn/bthk,hkd->btd/dot_general");
  EXPECT_EQ(op_in_layer("jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/attn/"
                        "bthk,hkd->btd/dot_general"),
            forward);
  EXPECT_EQ(op_in_layer("jit(step)/jvp(net)/up/dot_general"), "net/up/dot_general");
  EXPECT_EQ(op_in_layer("n17"), "");
}

TEST(OpScope, CommonScopes) {
  EXPECT_EQ(common_scope("MLP/b0", "MLP/b1"), "MLP");
  EXPECT_EQ(common_scope("MLP/b0", "MLP/b0"), "MLP/b0");
  EXPECT_EQ(common_scope("MLP", "MLP/b1"), "MLP");
  EXPECT_EQ(common_scope("layer1", "layer10"), "");
  EXPECT_EQ(common_scope("", "a"), "");
}

TEST(OpScope, KeysOfParameters) {
  EXPECT_THAT(tree_keys("params['blocks'][3]['mlp']['w1']"),
              ElementsAre("blocks", "3", "mlp", "w1"));
  EXPECT_THAT(tree_keys("o[0].mu['b0_up']['kernel']"), ElementsAre("0", "mu", "b0_up", "kernel"));
  EXPECT_THAT(tree_keys("p[\\'w1\\']"), ElementsAre("w1"));
  EXPECT_THAT(tree_keys("table"), IsEmpty());
  EXPECT_THAT(tree_keys("p[unclosed"), ElementsAre("unclosed"));
}

TEST(OpScope, FoldersOfParameters) {
  EXPECT_EQ(scope_of_parameter("params['blocks'][3]['mlp']['w1']"), "blocks/3/mlp");
  EXPECT_EQ(scope_of_parameter("p['b0_up']['kernel']"), "b0_up");
  EXPECT_EQ(scope_of_parameter("p['w1']"), "");
  EXPECT_EQ(scope_of_parameter("x"), "");
}

TEST(OpScope, NamesInFilesOfOurOwnModules) {
  for (auto [name, phase] : {std::pair("jvp()/matmul", ProgramPhase::kForward),
                             std::pair("transpose(jvp())/matmul", ProgramPhase::kBackward),
                             std::pair("optimizer()/matmul", ProgramPhase::kOptimizer),
                             std::pair("matmul", ProgramPhase::kUnknown)}) {
    EXPECT_EQ(phase_of_op(name), phase);
    EXPECT_EQ(without_phase(name), "matmul");
    EXPECT_EQ(op_scope(name), "");
  }
  EXPECT_EQ(without_phase("jit(f)/jvp()/matmul"), "jit(f)/jvp()/matmul");
}

}  // namespace
}  // namespace meshard
