#include "meshard/explain/collectives/logical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;

Collective step_of(CollectiveKind kind, std::string name, AxisList axes, std::int64_t in,
                   std::int64_t out) {
  return {.kind = kind,
          .instruction = std::move(name),
          .axes = std::move(axes),
          .group_size = 8,
          .bytes_in = in,
          .bytes_out = out,
          .channel = 1};
}

HloInstruction transfer(std::int64_t id, std::string opcode, HloShape shape,
                        std::vector<std::int64_t> operands, std::string type) {
  HloInstruction one =
      make_instruction(id, std::move(opcode), std::move(shape), std::move(operands));
  one.frontend_attributes = {{"_xla_host_transfer_handler_name", "xla_megascale_runtime"},
                             {"_xla_host_transfer_rendezvous", "all-reduce.2_0"},
                             {"_xla_megascale_transfer_type", std::move(type)}};
  return one;
}

std::vector<LogicalCollective> merged(const HloModule& module,
                                      const std::vector<Collective>& collectives) {
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  return find_logical_collectives(executions, collectives);
}

// As libtpu writes an all-reduce over two slices of eight devices: a reduce-scatter inside the
// slice, a transfer, and a gather.
class OverSlices : public testing::Test {
 protected:
  static constexpr std::int64_t kWhole = 4096, kPart = 512;

  static std::vector<HloInstruction> begin(const std::string& reduction, const std::string& type) {
    HloShape part = f32_shape({128}), token;
    return {make_parameter(1, 0, f32_shape({1024})),
            make_instruction(2, reduction, part, {1}),
            make_instruction(3, "bitcast", part, {2}),
            make_instruction(4, "after-all", token),
            transfer(5, "send", tuple_shape({part}), {3, 4}, type),
            transfer(6, "recv", tuple_shape({part}), {4}, type),
            make_instruction(7, "recv-done", tuple_shape({part}), {6}),
            make_element(8, 7, 0, part)};
  }

  static Collective sent() { return step_of(CollectiveKind::kSend, "send.5", {"dcn"}, kPart, 0); }
  static Collective received() {
    return step_of(CollectiveKind::kReceive, "recv.6", {"dcn"}, 0, kPart);
  }
};

TEST_F(OverSlices, ScatterTransferAndGatherAreOneAllReduce) {
  auto instructions = begin("reduce-scatter", "ALL_REDUCE");
  instructions.push_back(make_instruction(9, "bitcast", f32_shape({128}), {8}));
  instructions.push_back(make_instruction(10, "all-gather", f32_shape({1024}), {9}));
  Collective scatter =
      step_of(CollectiveKind::kReduceScatter, "reduce-scatter.2", {"data"}, kWhole, kPart);
  scatter.origin = {OriginCertainty::kInferred,
                    {{.node = {}, .op = "dot_general", .place = "train.py:9"}}};
  scatter.cause = CollectiveCause::kInserted;
  Collective gather = step_of(CollectiveKind::kAllGather, "all-gather.10", {"data"}, kPart, kWhole);
  gather.origin = {OriginCertainty::kInferred, {{.node = {}, .op = "sub", .place = "train.py:20"}}};
  auto found = merged(make_module({instructions}), {scatter, sent(), received(), gather});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].instructions,
              ElementsAre("reduce-scatter.2", "send.5", "recv.6", "all-gather.10"));
  const Collective& whole = found[0].whole;
  EXPECT_EQ(whole.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(whole.instruction, "reduce-scatter.2");
  EXPECT_EQ(whole.axes, AxisList({"dcn", "data"}));
  EXPECT_EQ(whole.bytes_in, kWhole);
  EXPECT_EQ(whole.bytes_out, kWhole);
  EXPECT_EQ(whole.form, CollectiveForm::kAcrossSlices);
  EXPECT_EQ(whole.origin, scatter.origin);  // not the line of the optimizer
  EXPECT_EQ(whole.cause, CollectiveCause::kInserted);
}

TEST_F(OverSlices, AScatterThatStaysSplitIsAnotherCollective) {
  auto instructions = begin("reduce-scatter", "ALL_REDUCE");
  instructions.push_back(make_instruction(9, "negate", f32_shape({128}), {8}));
  auto found =
      merged(make_module({instructions}),
             {step_of(CollectiveKind::kReduceScatter, "reduce-scatter.2", {"data"}, kWhole, kPart),
              sent(), received()});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].whole.kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(found[0].whole.axes, AxisList({"data"}));
  EXPECT_EQ(found[1].whole.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(found[1].whole.axes, AxisList({"dcn"}));
  EXPECT_EQ(found[1].whole.bytes(), kPart);
  EXPECT_THAT(found[1].instructions, ElementsAre("send.5", "recv.6"));
}

TEST_F(OverSlices, AnAllReduceInTheSliceIsAStepOfIt) {
  auto instructions = begin("all-reduce", "ALL_REDUCE");
  auto found = merged(make_module({instructions}),
                      {step_of(CollectiveKind::kAllReduce, "all-reduce.2", {"data"}, kPart, kPart),
                       sent(), received()});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].whole.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(found[0].whole.axes, AxisList({"dcn", "data"}));
  EXPECT_EQ(found[0].whole.bytes(), kPart);
}

TEST_F(OverSlices, ATransferOfSeveralValuesIsNotMerged) {
  // Two reductions are packed into one transfer.
  auto instructions = begin("all-reduce", "ALL_REDUCE");
  instructions.insert(instructions.begin() + 2,
                      make_instruction(20, "all-reduce", f32_shape({128}), {1}));
  instructions[3] = make_instruction(3, "concatenate", f32_shape({256}), {2, 20});
  auto found = merged(make_module({instructions}),
                      {step_of(CollectiveKind::kAllReduce, "all-reduce.2", {"data"}, kPart, kPart),
                       step_of(CollectiveKind::kAllReduce, "all-reduce.20", {"data"}, kPart, kPart),
                       sent(), received()});
  EXPECT_EQ(found.size(), 3u);
}

TEST_F(OverSlices, GatherBetweenSlicesAndInTheSliceIsOne) {
  HloShape part = f32_shape({128}), more = f32_shape({256}), token;
  HloModule module = make_module(
      {{make_parameter(1, 0, part), make_instruction(4, "after-all", token),
        transfer(5, "send", tuple_shape({part}), {1, 4}, "ALL_GATHER"),
        transfer(6, "recv", tuple_shape({more}), {4}, "ALL_GATHER"),
        make_instruction(7, "recv-done", tuple_shape({more}), {6}), make_element(8, 7, 0, more),
        make_instruction(9, "all-gather", f32_shape({2048}), {8})}});
  Collective receive = step_of(CollectiveKind::kReceive, "recv.6", {"dcn"}, 0, 2 * kPart);
  auto found = merged(module, {sent(), receive,
                               step_of(CollectiveKind::kAllGather, "all-gather.9", {"data"},
                                       2 * kPart, 16 * kPart)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].whole.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(found[0].whole.axes, AxisList({"dcn", "data"}));
  EXPECT_EQ(found[0].whole.bytes_in, kPart);
  EXPECT_EQ(found[0].whole.bytes_out, 16 * kPart);
}

// A gather that a compiler spreads over three fusions, in each of two computations.
TEST(LogicalCollectives, FragmentsOfOneChannelAreOne) {
  auto fusion = [](std::int64_t id, std::int64_t computation) {
    return calling(make_instruction(id, "fusion", f32_shape({8}), {1}), {computation});
  };
  auto fragment = [](std::int64_t id) {
    return std::vector{make_parameter(100 + id, 0, f32_shape({2})),
                       make_instruction(id, "all-gather", f32_shape({8}), {100 + id})};
  };
  HloModule module = make_module({{make_parameter(1, 0, f32_shape({2})), fusion(2, 1), fusion(3, 2),
                                   fusion(4, 3), fusion(5, 4)},
                                  fragment(11),
                                  fragment(12),
                                  fragment(13),
                                  fragment(14)});
  auto gather = [](std::string name, std::int64_t channel, bool continues) {
    Collective one = step_of(CollectiveKind::kAllGather, std::move(name), {"data"},
                             continues ? 0 : 8, continues ? 0 : 32);
    one.channel = channel;
    one.form = CollectiveForm::kFused;
    one.continues = continues;
    return one;
  };
  auto found =
      merged(module, {gather("all-gather.11", 7, false), gather("all-gather.12", 7, true),
                      gather("all-gather.13", 8, false), gather("all-gather.14", 7, true)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].instructions,
              ElementsAre("all-gather.11", "all-gather.12", "all-gather.14"));
  EXPECT_EQ(found[0].whole.bytes_out, 32);
  EXPECT_THAT(found[1].instructions, ElementsAre("all-gather.13"));
}

TEST(LogicalCollectives, WithoutTheModuleFragmentsFollowTheirChannel) {
  Collective first = step_of(CollectiveKind::kAllGather, "a", {"data"}, 8, 32), next = first;
  next.instruction = "b";
  next.continues = true;
  Collective other = next;
  other.kind = CollectiveKind::kAllReduce;
  other.instruction = "c";
  auto found = merge_fragments({first, next, other});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].instructions, ElementsAre("a", "b"));
  EXPECT_THAT(found[1].instructions, ElementsAre("c"));  // nothing that it continues
  EXPECT_EQ(whole_collectives(found).size(), 2u);
}

LogicalCollective of_layer(std::string layer, ProgramPhase phase, std::int64_t bytes,
                           std::int64_t executions = 1) {
  Collective one{.kind = CollectiveKind::kAllReduce, .instruction = "a"};
  one.bytes_in = one.bytes_out = bytes;
  one.executions = executions;
  one.purpose = {.kind = PurposeKind::kActivations, .layer = std::move(layer), .phase = phase};
  return {.whole = one, .instructions = {"a"}};
}

TEST(LayerTraffic, ARowForEachLayerAndPhase) {
  using enum ProgramPhase;
  std::vector<LayerTraffic> rows = layer_traffic(
      {of_layer("", kUnknown, 4), of_layer("b0", kForward, 16), of_layer("b1", kForward, 16),
       of_layer("b0", kBackward, 8), of_layer("b0", kForward, 1024, 3)});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], (LayerTraffic{"b0", kForward, PurposeKind::kActivations, 2, 4, 3088}));
  EXPECT_EQ(rows[0].to_string(), "b0, forward: 2 collectives run 4 times, activations, 3 KiB");
  EXPECT_EQ(rows[1].to_string(), "b1, forward: 1 collective, activations, 16 B");
  EXPECT_EQ(rows[2].to_string(), "b0, backward: 1 collective, activations, 8 B");
  EXPECT_EQ(rows[3].to_string(), "outside the layers: 1 collective, activations, 4 B");
}

TEST(LayerTraffic, WithoutLayersThereAreNoRows) {
  EXPECT_TRUE(layer_traffic({of_layer("", ProgramPhase::kForward, 4)}).empty());
  EXPECT_TRUE(layer_traffic({}).empty());
  EXPECT_TRUE(layer_traffic({of_layer("loop", ProgramPhase::kUnknown, 4)}).empty());
  EXPECT_EQ(layer_traffic({of_layer("loop", ProgramPhase::kForward, 4)}).size(), 1u);
}

}  // namespace

}  // namespace meshard
