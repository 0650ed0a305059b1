#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;

const HloShape kShard = f32_shape({8, 16});

HloInstruction op(std::int64_t id, std::string opcode, std::vector<std::int64_t> operands,
                  std::string name) {
  return make_instruction(id, std::move(opcode), kShard, std::move(operands), std::move(name));
}

HloInstruction gather(std::int64_t id, std::int64_t of, std::string name,
                      std::string opcode = "all-gather") {
  return make_collective(id, std::move(opcode), kShard, {of}, std::move(name), {{0, 1}});
}

// Sets the boundary from the entry's parameters and its root.
HloModule program(std::vector<std::vector<HloInstruction>> computations) {
  HloModule module = make_module(std::move(computations));
  for (const HloInstruction& each : module.computations[0].instructions)
    if (each.opcode == "parameter") module.parameters.push_back(each.shape);
  module.result = module.computations[0].instructions.back().shape;
  return module;
}

std::vector<Collective> with_purposes(const HloModule& module, const BoundaryNames& names) {
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  return with_purposes(executions, names, ProgramPhases(),
                       find_collectives(executions, std::nullopt, nullptr).value());
}

// A step of training as JAX writes it: a product with a gathered weight, the sum of its gradient,
// Adam's state, and the loss.
HloModule training_step() {
  HloShape scalar = f32_shape({});
  HloInstruction loss =
      make_collective(14, "all-reduce", scalar, {13}, "jit(step)/jvp()/reduce_sum", {{0, 1}});
  return program(
      {{make_parameter(1, 0, kShard), make_parameter(2, 1, kShard), make_parameter(3, 2, kShard),
        op(4, "convert", {1}, ""), gather(5, 4, "params['up']"),
        op(6, "dot", {3, 5}, "jit(step)/jvp(net)/up/dot_general"),
        op(7, "dot", {3, 6}, "jit(step)/transpose(jvp(net))/up/dot_general"),
        gather(8, 7, "jit(step)/transpose(jvp(net))/up/dot_general", "all-reduce"),
        op(9, "add", {2, 8}, "jit(step)/add"), op(10, "sqrt", {9}, "jit(step)/sqrt"),
        op(11, "subtract", {1, 10}, "jit(step)/sub"),
        make_instruction(13, "reduce", scalar, {6}, "jit(step)/jvp()/reduce_sum"), loss,
        make_instruction(15, "tuple", tuple_shape({kShard, kShard, scalar}), {11, 9, 14})}});
}

const BoundaryNames kStepNames = {{"params['up']", "mean['up']", "x"},
                                  {"[0]['up']", "[1]['up']", "[2]"}};

TEST(Purposes, WeightsGradientsAndTheLoss) {
  std::vector<Collective> found = with_purposes(training_step(), kStepNames);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].purpose, (CollectivePurpose{.kind = PurposeKind::kWeight,
                                                 .certainty = PurposeCertainty::kExact,
                                                 .names = {"params['up']"},
                                                 .layer = "net/up",
                                                 .phase = ProgramPhase::kForward}));
  // Not mean['up'], which the model does not read.
  EXPECT_EQ(found[1].purpose, (CollectivePurpose{.kind = PurposeKind::kGradient,
                                                 .certainty = PurposeCertainty::kExact,
                                                 .names = {"params['up']"},
                                                 .layer = "net/up",
                                                 .phase = ProgramPhase::kBackward}));
  EXPECT_EQ(found[2].purpose.kind, PurposeKind::kResult);
  EXPECT_THAT(found[2].purpose.names, ElementsAre("[2]"));
}

TEST(Purposes, WithoutNamesTheMemoryThatIsReused) {
  HloModule module = training_step();
  module.aliases = {
      {.output_index = {0}, .parameter = 0, .parameter_index = {}, .must_alias = false},
      {.output_index = {1}, .parameter = 1, .parameter_index = {}, .must_alias = false}};
  std::vector<Collective> found = with_purposes(module, {});
  EXPECT_THAT(found[0].purpose.names, ElementsAre("argument 0"));
  EXPECT_EQ(found[0].purpose.kind, PurposeKind::kWeight);
  EXPECT_EQ(found[1].purpose.kind, PurposeKind::kGradient);
  EXPECT_THAT(found[1].purpose.names, ElementsAre("argument 0"));
}

TEST(Purposes, WithoutNamesAndReuseTheGradientIsNotGuessed) {
  std::vector<Collective> found = with_purposes(training_step(), {});
  EXPECT_EQ(found[0].purpose.kind, PurposeKind::kArgument);
  EXPECT_EQ(found[1].purpose.kind, PurposeKind::kActivations);
}

TEST(Purposes, ActivationsBetweenLayers) {
  std::vector<Collective> found =
      with_purposes(program({{make_parameter(1, 0, kShard), make_parameter(2, 1, kShard),
                              op(3, "dot", {1, 2}, "jit(f)/mlp/dot_general"),
                              gather(4, 3, "jit(f)/mlp/dot_general", "all-reduce"),
                              op(5, "dot", {4, 2}, "jit(f)/head/dot_general")}}),
                    {{"x", "w"}, {"result"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].purpose.kind, PurposeKind::kActivations);
  EXPECT_EQ(found[0].purpose.layer, "mlp");
  EXPECT_EQ(found[0].purpose.phase, ProgramPhase::kUnknown);  // nothing is differentiated
}

TEST(Purposes, TheUsersOwn) {
  std::vector<Collective> found = with_purposes(
      program({{make_parameter(1, 0, kShard), op(2, "negate", {1}, "jit(f)/shard_map/neg"),
                gather(3, 2, "jit(f)/shard_map/all_to_all", "all-to-all"),
                op(4, "negate", {3}, "jit(f)/shard_map/neg")}}),
      {{"x"}, {"result"}});
  EXPECT_EQ(found[0].cause, CollectiveCause::kAsked);
  EXPECT_EQ(found[0].purpose.kind, PurposeKind::kUser);
}

TEST(Purposes, TheUpdateIsGathered) {
  // A split state: the gradient is only added to it, and the change of the weight is gathered.
  std::vector<Collective> found =
      with_purposes(program({{make_parameter(1, 0, kShard), make_parameter(2, 1, kShard),
                              op(3, "dot", {2, 1}, "jit(step)/transpose(jvp())/dot_general"),
                              op(4, "sqrt", {3}, "jit(step)/sqrt"), gather(5, 4, "jit(step)/div"),
                              op(6, "subtract", {1, 5}, "jit(step)/sub"),
                              make_instruction(7, "tuple", tuple_shape({kShard}), {6})}}),
                    {{"params['up']", "x"}, {"['up']"}});
  EXPECT_EQ(found[0].purpose.kind, PurposeKind::kUpdate);
  EXPECT_THAT(found[0].purpose.names, ElementsAre("params['up']"));
  EXPECT_EQ(found[0].purpose.phase, ProgramPhase::kOptimizer);
}

TEST(Purposes, AStackedWeightInALoopIsInALayer) {
  HloShape state = tuple_shape({s32_scalar(), kShard});
  std::vector<Collective> found = with_purposes(
      program({{make_constant(1, 0), make_parameter(2, 0, kShard),
                make_instruction(3, "tuple", state, {1, 2}),
                calling(make_instruction(4, "while", state, {3}), {1, 2})},
               {make_parameter(11, 0, state), make_element(12, 11, 0),
                make_element(13, 11, 1, kShard), op(14, "dynamic-slice", {13, 12}, ""),
                gather(15, 14, "jit(f)/jvp()/while/body/jit(dynamic_index_in_dim)/squeeze"),
                op(16, "dot", {15, 15}, "jit(f)/jvp()/while/body/closed_call/mlp/dot_general"),
                make_instruction(17, "tuple", state, {12, 13})},
               {make_parameter(21, 0, state), make_element(22, 21, 0), make_constant(23, 6),
                make_compare(24, "LT", 22, 23)}}),
      {{"blocks['w']"}, {}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].purpose.names, ElementsAre("blocks['w']"));
  EXPECT_EQ(found[0].purpose.layer, "loop/mlp");
}

// What is gathered is a function of a layer's slice of a stacked weight, which the step replaces.
TEST(Purposes, AFunctionOfAStackedWeight) {
  const HloShape stacked = f32_shape({4, 8, 16});
  for (std::int64_t size : {16, 8}) {  // of half a layer, the rest may be from elsewhere
    const HloShape layer = f32_shape({1, 8, size});
    HloInstruction gathered =
        make_collective(5, "all-gather", layer, {4}, "jit(step)/jvp(up)/max", {{0, 1}});
    std::vector<Collective> found = with_purposes(
        program({{make_parameter(1, 0, stacked), make_constant(2, 0),
                  make_instruction(3, "dynamic-slice", layer, {1, 2}),
                  make_instruction(4, "maximum", layer, {3, 3}), gathered,
                  make_instruction(6, "dot", stacked, {5, 1}, "jit(step)/jvp(up)/dot_general"),
                  make_instruction(7, "subtract", stacked, {1, 6}, "jit(step)/sub"),
                  make_instruction(8, "tuple", tuple_shape({stacked}), {7})}}),
        {{"params['up']"}, {"[0]['up']"}});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].purpose.kind, size == 16 ? PurposeKind::kWeight : PurposeKind::kActivations);
    EXPECT_EQ(found[0].purpose.names.size(), size == 16 ? 1u : 0u);
  }
}

// The name of such a sum is that of one of its ops.
TEST(Purposes, TheGradientsOfTwoLayersAreInNone) {
  for (const char* second : {"head", "net"}) {
    const std::string head = second;
    HloShape pair = tuple_shape({kShard, kShard});
    HloInstruction sum = make_collective(8, "all-reduce", pair, {6, 7},
                                         "jit(step)/transpose(jvp(net))/dot_general", {{0, 1}});
    std::vector<Collective> found = with_purposes(
        program(
            {{make_parameter(1, 0, kShard), make_parameter(2, 1, kShard),
              make_parameter(3, 2, kShard), op(4, "dot", {3, 1}, "jit(step)/jvp(net)/dot_general"),
              op(5, "dot", {4, 2}, "jit(step)/jvp(" + head + ")/dot_general"),
              op(6, "dot", {5, 3}, "jit(step)/transpose(jvp(net))/dot_general"),
              op(7, "dot", {5, 4}, "jit(step)/transpose(jvp(" + head + "))/dot_general"), sum,
              make_element(9, 8, 0, kShard), make_element(10, 8, 1, kShard),
              op(11, "subtract", {1, 9}, "jit(step)/sub"),
              op(12, "subtract", {2, 10}, "jit(step)/sub"),
              make_instruction(13, "tuple", pair, {11, 12})}}),
        {{"params['w1']", "params['w2']", "x"}, {"['w1']", "['w2']"}});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].purpose.kind, PurposeKind::kGradient);
    EXPECT_THAT(found[0].purpose.names, ElementsAre("params['w1']", "params['w2']"));
    EXPECT_EQ(found[0].purpose.layer, head == "net" ? "net" : "");
  }
}

TEST(Purposes, ReshardsOfActivations) {
  Collective weight{.kind = CollectiveKind::kAllGather, .instruction = "a"}, moved = weight;
  weight.purpose.kind = PurposeKind::kWeight;
  moved.instruction = "b";
  moved.purpose.kind = PurposeKind::kActivations;
  std::vector<Collective> all = {weight, moved};
  all = with_moves(all,
                   {{.instruction = "a", .from = "P(\"x\")", .to = "P(none)"},
                    {.instruction = "b", .from = "P(\"x\")", .to = "P(\"y\")"}},
                   {}, nullptr);
  EXPECT_EQ(all[0].purpose.kind, PurposeKind::kWeight);
  EXPECT_EQ(all[0].purpose.to, "P(none)");
  EXPECT_EQ(all[1].purpose.kind, PurposeKind::kReshard);
  EXPECT_EQ(all[1].purpose.from, "P(\"x\")");
}

TEST(Purposes, InALineOfText) {
  EXPECT_EQ(purpose_text(PurposeKind::kWeight, {"w1"}), " of weight w1");
  EXPECT_EQ(purpose_text(PurposeKind::kArgument, {"argument 3"}), " of argument 3");
  EXPECT_EQ(purpose_text(PurposeKind::kWeight, {"w1", "w2"}), " of weights (w1, w2)");
  EXPECT_EQ(purpose_text(PurposeKind::kGradient, {"a", "b", "c", "d"}),
            " of the gradients of (a, b, c, ...)");
  EXPECT_EQ(purpose_text(PurposeKind::kGradient, {"a"}), " of the gradient of a");
  EXPECT_EQ(purpose_text(PurposeKind::kActivations, {}), "");
  EXPECT_EQ(layers_text({"b0"}), " in b0");
  EXPECT_EQ(layers_text({"loop"}), "");
  EXPECT_EQ(layers_text({"b0", "b1", "b2", "b3"}), " in 4 layers (b0, b1, b2, ...)");
}

}  // namespace
}  // namespace meshard
