#include "meshard/explain/collectives/value_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A module and what is needed to follow its values.
class Flowing {
 public:
  explicit Flowing(HloModule made)
      : module_(std::move(made)),
        index_(module_),
        executions_(Executions::of(index_).value()),
        flow_(executions_) {}

  LocatedInstruction at(std::int64_t computation, std::int64_t id) const {
    const InstructionIndex* in = index_.find(computation);
    return {in, in->find(id)};
  }
  ValueSources sources(std::int64_t computation, std::int64_t id) const {
    return flow_.sources(at(computation, id), 0);
  }
  ValueUses uses(std::int64_t computation, std::int64_t id, bool arithmetic) const {
    return flow_.uses(at(computation, id), -1, arithmetic);
  }

 private:
  HloModule module_;
  ModuleIndex index_;
  Executions executions_;
  ValueFlow flow_;
};

std::vector<std::string> flow_names(const std::vector<LocatedInstruction>& all) {
  std::vector<std::string> names;
  for (const LocatedInstruction& each : all) names.push_back(each.instruction->name);
  return names;
}

const HloShape kFlowShape = f32_shape({8});

// A loop of which element 1 is never changed and element 2 is.
Flowing loop() {
  HloShape state = tuple_shape({s32_scalar(), kFlowShape, kFlowShape});
  std::vector<HloInstruction> entry = {
      make_constant(1, 0),
      make_parameter(2, 0, kFlowShape),
      make_parameter(3, 1, kFlowShape),
      make_instruction(4, "convert", kFlowShape, {2}),
      make_instruction(5, "tuple", state, {1, 4, 3}),
      calling(make_instruction(6, "while", state, {5}), {1, 2}),
      make_element(7, 6, 1, kFlowShape),
      make_element(8, 6, 2, kFlowShape),
      make_instruction(9, "tuple", tuple_shape({kFlowShape, kFlowShape}), {7, 8})};
  std::vector<HloInstruction> body = {make_parameter(11, 0, state),
                                      make_element(12, 11, 0),
                                      make_element(13, 11, 1, kFlowShape),
                                      make_element(14, 11, 2, kFlowShape),
                                      make_instruction(15, "dynamic-slice", kFlowShape, {13, 12}),
                                      make_instruction(16, "all-gather", kFlowShape, {15}),
                                      make_instruction(17, "dot", kFlowShape, {14, 16}),
                                      make_instruction(18, "all-gather", kFlowShape, {14}),
                                      make_instruction(19, "tuple", state, {12, 13, 17})};
  std::vector<HloInstruction> condition = {make_parameter(21, 0, state), make_element(22, 21, 0),
                                           make_constant(23, 6), make_compare(24, "LT", 22, 23)};
  return Flowing(make_module({entry, body, condition}));
}

TEST(ValueFlow, AnUnchangedElementOfALoopIsTheArgument) {
  ValueSources sources = loop().sources(1, 16);
  EXPECT_THAT(sources.parameters, ElementsAre(0));
  EXPECT_FALSE(sources.computed);
}

TEST(ValueFlow, AChangedElementOfALoopIsComputed) {
  ValueSources sources = loop().sources(1, 18);
  EXPECT_THAT(sources.parameters, ElementsAre(1));  // in the first iteration
  EXPECT_TRUE(sources.computed);
}

TEST(ValueFlow, UsesInALoopAndAfterIt) {
  ValueUses uses = loop().uses(0, 2, false);
  EXPECT_THAT(flow_names(uses.consumers), ElementsAre("dot.17"));
  EXPECT_THAT(flow_names(uses.collectives), ElementsAre("all-gather.16"));
  EXPECT_THAT(uses.results, ElementsAre(0));
  EXPECT_THAT(loop().uses(1, 17, false).results, ElementsAre(1));
}

// A fusion with two results, one of which is an argument, and an asynchronous copy.
Flowing fused() {
  HloShape pair = tuple_shape({kFlowShape, kFlowShape});
  std::vector<HloInstruction> entry = {make_parameter(1, 0, kFlowShape),
                                       make_parameter(2, 1, kFlowShape),
                                       make_instruction(3, "copy-start", pair, {1}),
                                       make_instruction(4, "copy-done", kFlowShape, {3}),
                                       calling(make_instruction(5, "fusion", pair, {4, 2}), {1}),
                                       make_element(6, 5, 0, kFlowShape),
                                       make_element(7, 5, 1, kFlowShape),
                                       make_instruction(8, "all-gather", kFlowShape, {6}),
                                       make_instruction(9, "all-gather", kFlowShape, {7}),
                                       make_instruction(10, "tuple", pair, {8, 9})};
  std::vector<HloInstruction> body = {make_parameter(11, 0, kFlowShape),
                                      make_parameter(12, 1, kFlowShape),
                                      make_instruction(13, "bitcast", kFlowShape, {11}),
                                      make_instruction(14, "multiply", kFlowShape, {11, 12}),
                                      make_instruction(15, "tuple", pair, {13, 14})};
  return Flowing(make_module({entry, body}));
}

TEST(ValueFlow, ElementsOfAFusionAreToldApart) {
  EXPECT_THAT(fused().sources(0, 8).parameters, ElementsAre(0));
  EXPECT_FALSE(fused().sources(0, 8).computed);
  EXPECT_TRUE(fused().sources(0, 9).computed);
}

TEST(ValueFlow, ArithmeticIsFollowedOnRequest) {
  EXPECT_THAT(fused().uses(0, 2, false).results, IsEmpty());
  EXPECT_THAT(flow_names(fused().uses(0, 2, false).consumers), ElementsAre("multiply.14"));
  EXPECT_THAT(fused().uses(0, 2, true).results, ElementsAre(1));
  EXPECT_THAT(fused().uses(0, 1, true).results, ElementsAre(0, 1));
}

// A TPU compiler's asynchronous gather in two fusions: the second gives the result.
TEST(ValueFlow, FragmentsOfAnAsynchronousGather) {
  HloShape pair = tuple_shape({kFlowShape, kFlowShape});
  auto call = [](std::int64_t id, const char* target, HloShape shape,
                 std::vector<std::int64_t> operands) {
    HloInstruction one = make_instruction(id, "custom-call", std::move(shape), std::move(operands));
    one.custom_call_target = target;
    return one;
  };
  Flowing made(make_module(
      {{make_parameter(1, 0, kFlowShape), calling(make_instruction(2, "fusion", pair, {1}), {1}),
        make_element(3, 2, 0, kFlowShape), make_element(4, 2, 1, kFlowShape),
        calling(make_instruction(5, "fusion", kFlowShape, {3, 4}), {2}),
        make_instruction(6, "dot", kFlowShape, {5, 5})},
       {make_parameter(11, 0, kFlowShape), make_instruction(12, "all-gather", kFlowShape, {11}),
        call(13, "AsyncCollectiveStart", pair, {12})},
       {make_parameter(21, 0, kFlowShape), make_parameter(22, 1, kFlowShape),
        make_instruction(23, "all-gather", kFlowShape, {21}),
        call(24, "AsyncCollectiveDone", kFlowShape, {21, 22, 23})}}));
  EXPECT_THAT(made.sources(0, 6).parameters, ElementsAre(0));
  EXPECT_FALSE(made.sources(0, 6).computed);
  EXPECT_THAT(flow_names(made.uses(1, 12, false).consumers), testing::Contains("dot.6"));
}

// What another slice sent is the same argument there, unless the transfer adds up.
TEST(ValueFlow, TransfersBetweenSlices) {
  auto module_with = [](const char* reduction) {
    HloShape pair = tuple_shape({kFlowShape});
    HloInstruction send = make_instruction(3, "send", pair, {1, 2});
    send.frontend_attributes = {{"_xla_host_transfer_rendezvous", "all-gather.1_0"}};
    if (*reduction)
      send.frontend_attributes.emplace_back("_xla_megascale_reduce_operation", reduction);
    HloInstruction receive = make_instruction(4, "recv", pair, {2});
    receive.frontend_attributes = send.frontend_attributes;
    return make_module(
        {{make_parameter(1, 0, kFlowShape), make_instruction(2, "after-all", HloShape()), send,
          receive, make_instruction(5, "recv-done", pair, {4}), make_element(6, 5, 0, kFlowShape),
          make_instruction(7, "all-gather", kFlowShape, {6})}});
  };
  EXPECT_THAT(Flowing(module_with("")).sources(0, 7).parameters, ElementsAre(0));
  EXPECT_FALSE(Flowing(module_with("")).sources(0, 7).computed);
  EXPECT_TRUE(Flowing(module_with("SUM")).sources(0, 7).computed);
  EXPECT_THAT(Flowing(module_with("SUM")).uses(0, 1, false).results, ElementsAre(0));
}

// A value in two parts, each padded with the lowest number to the size of the whole.
TEST(ValueFlow, PaddedPartsAreJoinedByTheirMaximum) {
  for (bool is_pad : {true, false}) {
    HloModule module = make_module(
        {{make_parameter(1, 0, kFlowShape), make_parameter(2, 1, kFlowShape), make_constant(3, 0),
          make_instruction(4, is_pad ? "pad" : "tanh", kFlowShape, {1, 3}),
          make_instruction(5, "pad", kFlowShape, {2, 3}),
          make_instruction(6, "dynamic-slice", kFlowShape, {4, 3}),
          make_instruction(7, "convert", kFlowShape, {6}),
          make_instruction(8, "dynamic-slice", kFlowShape, {5, 3}),
          make_instruction(9, "maximum", kFlowShape, {7, 8}),
          make_instruction(10, "all-gather", kFlowShape, {9})}});
    Flowing made(module);
    EXPECT_EQ(made.sources(0, 10).computed, !is_pad);
    if (is_pad) {
      EXPECT_THAT(made.sources(0, 10).parameters, ElementsAre(0, 1));
      EXPECT_THAT(flow_names(made.uses(0, 1, false).consumers), IsEmpty());
      EXPECT_THAT(made.uses(0, 1, false).results, ElementsAre(0));
    }
  }
}

TEST(ValueFlow, BranchesAndTheirOperands) {
  HloModule module = make_module(
      {{make_parameter(1, 0, array_shape(pjrt::ElementType::kPred, {})),
        make_parameter(2, 1, kFlowShape), make_parameter(3, 2, kFlowShape),
        calling(make_instruction(4, "conditional", kFlowShape, {1, 2, 3}), {1, 2}),
        make_instruction(5, "all-gather", kFlowShape, {4})},
       {make_parameter(11, 0, kFlowShape), make_instruction(12, "copy", kFlowShape, {11})},
       {make_parameter(21, 0, kFlowShape), make_instruction(22, "copy", kFlowShape, {21})}});
  Flowing made(module);
  EXPECT_THAT(made.sources(0, 5).parameters, ElementsAre(1, 2));
  EXPECT_FALSE(made.sources(0, 5).computed);
  EXPECT_THAT(made.sources(2, 22).parameters, ElementsAre(2));
  EXPECT_THAT(made.uses(0, 2, false).results, ElementsAre(0));
}

}  // namespace
}  // namespace meshard
