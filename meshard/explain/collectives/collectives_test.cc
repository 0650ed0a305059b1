#include "meshard/explain/collectives/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/hlo_testutil.h"

namespace meshard {
namespace {

const Mesh kCollectivesMesh({{"data", 2}, {"model", 4}});
const std::vector<std::vector<std::int64_t>> kModelGroups = {{0, 1, 2, 3}, {4, 5, 6, 7}};

std::vector<Collective> found_in(const HloModule& module) {
  return find_collectives(module, kCollectivesMesh, nullptr).value();
}

std::vector<std::string> found_ops_of(const Collective& one) {
  std::vector<std::string> ops;
  for (const OriginPlace& place : one.origin.places) ops.push_back(place.op);
  return ops;
}

TEST(Collectives, NoneInAPlainModule) {
  EXPECT_TRUE(found_in(make_module({{make_instruction(1, "parameter", f32_shape({4}))}})).empty());
}

TEST(Collectives, BytesOfOperandsAndResult) {
  std::vector<Collective> found = found_in(make_module({{
      make_instruction(1, "parameter", f32_shape({4, 8})),
      make_collective(2, "all-gather", f32_shape({16, 8}), {1}, "n1", kModelGroups),
      make_collective(3, "reduce-scatter", f32_shape({4, 8}), {2}, "n2", kModelGroups),
  }}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(found[0].bytes_in, 4 * 8 * 4);
  EXPECT_EQ(found[0].bytes_out, 16 * 8 * 4);
  EXPECT_EQ(found[0].bytes(), 16 * 8 * 4);
  EXPECT_EQ(found[0].axes, AxisList({"model"}));
  EXPECT_EQ(found[0].channel, 2);
  EXPECT_EQ(found[1].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(found[1].bytes_in, 16 * 8 * 4);
  EXPECT_EQ(found[1].bytes_out, 4 * 8 * 4);
  EXPECT_EQ(found[1].bytes(), 16 * 8 * 4);
}

TEST(Collectives, StartsCountOnceAndOnlyTheirResultIsOut) {
  HloInstruction permute = make_instruction(
      4, "collective-permute-start",
      tuple_shape({f32_shape({4}), f32_shape({4}), f32_shape({}), f32_shape({})}), {1}, "n4");
  permute.channel_id = 4;
  permute.source_target_pairs = {{0, 4}, {4, 0}};
  std::vector<Collective> found = found_in(make_module({{
      make_instruction(1, "parameter", f32_shape({4})),
      make_collective(2, "all-gather-start", tuple_shape({f32_shape({4}), f32_shape({16})}), {1},
                      "n2", kModelGroups),
      make_instruction(3, "all-gather-done", f32_shape({16}), {2}, "n2"),
      permute,
      make_instruction(5, "collective-permute-done", f32_shape({4}), {4}, "n4"),
      make_collective(6, "all-reduce-start", f32_shape({4}), {1}, "n5", kModelGroups),
      make_instruction(7, "all-reduce-done", f32_shape({4}), {6}, "n5"),
  }}));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].bytes_in, 16);
  EXPECT_EQ(found[0].bytes_out, 64);
  EXPECT_EQ(found[1].kind, CollectiveKind::kCollectivePermute);
  EXPECT_EQ(found[1].bytes_out, 16);
  EXPECT_EQ(found[1].axes, AxisList({"data"}));
  EXPECT_EQ(found[1].shifts, (std::vector<AxisShift>{{{"data"}, +1, true}}));
  EXPECT_EQ(found[2].bytes_out, 16);
}

TEST(Collectives, InsideAnAsyncStartCountsOnceAndIsNamedFromOutside) {
  std::vector<Collective> found = found_in(make_module({
      {
          make_instruction(1, "negate", f32_shape({16}), {}, "n3"),
          calling(make_instruction(2, "async-start", f32_shape({4}), {1}), {1}),
          calling(make_instruction(3, "async-update", f32_shape({4}), {2}), {1}),
          calling(make_instruction(4, "async-done", f32_shape({4}), {3}), {1}),
      },
      {
          make_instruction(5, "parameter", f32_shape({16})),
          make_collective(6, "reduce-scatter", f32_shape({4}), {5}, "", kModelGroups),
      },
  }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes_in, 64);
  EXPECT_EQ(found[0].origin.certainty, OriginCertainty::kInferred);
  EXPECT_THAT(found_ops_of(found[0]), testing::ElementsAre("n3"));
}

TEST(Collectives, SendAndReceive) {
  HloInstruction send = make_instruction(
      2, "send", tuple_shape({f32_shape({4}), f32_shape({}), f32_shape({})}), {1, 9}, "n2");
  HloInstruction receive = make_instruction(
      3, "recv", tuple_shape({f32_shape({8}), f32_shape({}), f32_shape({})}), {9}, "n3");
  std::vector<Collective> found = found_in(make_module({{
      make_instruction(1, "parameter", f32_shape({4})),
      make_instruction(9, "after-all", f32_shape({})),
      send,
      make_instruction(4, "send-done", f32_shape({}), {2}, "n2"),
      receive,
      make_instruction(5, "recv-done", f32_shape({8}), {3}, "n3"),
  }}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(found[0].bytes_in, 16);
  EXPECT_EQ(found[0].bytes_out, 0);
  EXPECT_EQ(found[0].axes, std::nullopt);
  EXPECT_EQ(found[1].kind, CollectiveKind::kReceive);
  EXPECT_EQ(found[1].bytes_in, 0);
  EXPECT_EQ(found[1].bytes_out, 32);
}

TEST(Collectives, RaggedAllToAllAndBroadcast) {
  std::vector<Collective> found = found_in(make_module({{
      make_instruction(1, "parameter", f32_shape({4})),
      make_instruction(2, "parameter", f32_shape({8})),
      make_collective(3, "ragged-all-to-all", f32_shape({8}), {1, 2}, "n1", kModelGroups),
      make_collective(4, "collective-broadcast", f32_shape({4}), {1}, "n2", kModelGroups),
  }}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, CollectiveKind::kRaggedAllToAll);
  EXPECT_EQ(found[0].bytes_in, 16);  // the output buffer is not sent
  EXPECT_EQ(found[0].bytes_out, 32);
  EXPECT_EQ(found[1].kind, CollectiveKind::kCollectiveBroadcast);
}

TEST(Collectives, LoopsBranchesAndCalls) {
  auto reduction = [](std::int64_t id) {
    return make_collective(id, "all-reduce", f32_shape({4}), {}, "n1", kModelGroups);
  };
  std::vector<Collective> found = found_in(make_module({
      {
          calling(make_instruction(1, "while", f32_shape({4})), {1, 4}),
          calling(make_instruction(2, "conditional", f32_shape({4})), {3, 4}),
          calling(make_instruction(3, "call", f32_shape({4})), {3}),
          calling(make_instruction(4, "call", f32_shape({4})), {3}),
      },
      {calling(make_instruction(11, "while", f32_shape({4})), {2, 4}), reduction(12)},
      {reduction(21)},
      {reduction(31)},
      {make_instruction(41, "parameter", f32_shape({}))},
      {reduction(51)},  // never called
  }));
  // Each is listed once, including the one that three instructions call.
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].instruction, "all-reduce.21");
  EXPECT_EQ(found[0].loop_depth, 2);
  EXPECT_FALSE(found[0].executions_known);
  EXPECT_EQ(found[1].instruction, "all-reduce.12");
  EXPECT_EQ(found[1].loop_depth, 1);
  EXPECT_FALSE(found[1].conditional);
  EXPECT_EQ(found[2].instruction, "all-reduce.31");
  EXPECT_FALSE(found[2].conditional);  // two of its calls are not in a branch
  EXPECT_EQ(found[2].loop_depth, 0);
  EXPECT_EQ(found[2].executions, 3);
  EXPECT_TRUE(found[2].executions_known);
}

TEST(Collectives, InABranchOnly) {
  std::vector<Collective> found = found_in(make_module({
      {calling(make_instruction(1, "conditional", f32_shape({4})), {1})},
      {make_collective(2, "all-reduce", f32_shape({4}), {}, "n1", kModelGroups)},
  }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].conditional);
}

TEST(Collectives, FormsOfACollective) {
  auto permutation = [](std::int64_t id, std::string op_name) {
    HloInstruction one = make_instruction(id, "collective-permute", f32_shape({4}), {1}, op_name);
    one.channel_id = id;
    one.source_target_pairs = {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4, 5}, {5, 6}, {6, 7}, {7, 4}};
    one.frontend_attributes = {{"is_spmd_generated", "true"}};
    return one;
  };
  HloInstruction send = make_instruction(5, "send", tuple_shape({f32_shape({4})}), {1}, "n1");
  send.frontend_attributes = {{"_xla_host_transfer_handler_name", "xla_megascale_runtime"}};
  std::vector<Collective> found = found_in(make_module({
      {make_instruction(1, "parameter", f32_shape({4})), permutation(2, "jit(f)/dot_general"),
       permutation(3, "jit(f)/concatenate"),
       calling(make_instruction(4, "fusion", f32_shape({4}), {1}), {1}), send},
      {make_collective(11, "all-reduce", f32_shape({4}), {}, "n1", kModelGroups)},
  }));
  std::vector<CollectiveForm> forms;
  for (const Collective& one : found) forms.push_back(one.form);
  EXPECT_THAT(forms, testing::ElementsAre(CollectiveForm::kWindowedEinsum, CollectiveForm::kPlain,
                                          CollectiveForm::kFused, CollectiveForm::kAcrossSlices));
}

// libtpu's form of an all-gather that is spread over fusions: one instruction per step, all with
// the same channel and chain.
TEST(Collectives, StepsOfOneSpreadOverFusionsHaveTheirBytesOnce) {
  auto step = [](std::int64_t id, std::int64_t channel) {
    HloInstruction one =
        make_collective(id, "all-gather", f32_shape({16}), {100}, "n1", kModelGroups);
    one.channel_id = channel;
    one.frontend_attributes = {{"chain_id", "0"}};
    return one;
  };
  std::vector<Collective> found = found_in(make_module({
      {make_instruction(1, "parameter", f32_shape({4})),
       calling(make_instruction(2, "fusion", f32_shape({4}), {1}), {1}),
       calling(make_instruction(3, "fusion", f32_shape({4}), {1}), {2}),
       calling(make_instruction(4, "fusion", f32_shape({4}), {1}), {3})},
      {step(11, 7)},
      {step(21, 7)},
      {step(31, 8)},
  }));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].continues);
  EXPECT_EQ(found[0].bytes(), 64);
  EXPECT_TRUE(found[1].continues);
  EXPECT_EQ(found[1].bytes(), 0);
  EXPECT_FALSE(found[2].continues);
  EXPECT_EQ(found[2].bytes(), 64);
}

TEST(Collectives, ACircleOfCallsIsAnError) {
  HloModule module = make_module({
      {calling(make_instruction(1, "call", f32_shape({})), {1})},
      {calling(make_instruction(2, "call", f32_shape({})), {0})},
  });
  Result<std::vector<Collective>> found = find_collectives(module, kCollectivesMesh, nullptr);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ErrorCode::kDataLoss);
  EXPECT_THAT(found.error().message(), testing::HasSubstr("cyclic"));
}

TEST(Collectives, DamagedGroupsAreAnErrorThatNamesTheInstruction) {
  HloInstruction one = make_collective(2, "all-reduce", f32_shape({4}), {}, "n1", {});
  one.groups.iota = {.count = 2, .group_size = 3, .reshape_dims = {8}, .transpose_perm = {0}};
  Result<std::vector<Collective>> found =
      find_collectives(make_module({{one}}), kCollectivesMesh, nullptr);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().what(), testing::HasSubstr("all-reduce.2"));
}

TEST(Collectives, WithoutAMeshThereAreNoAxes) {
  std::vector<Collective> found =
      find_collectives(
          make_module({{make_collective(2, "all-reduce", f32_shape({4}), {}, "n1", kModelGroups)}}),
          std::nullopt, nullptr)
          .value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].axes, std::nullopt);
}

}  // namespace
}  // namespace meshard
