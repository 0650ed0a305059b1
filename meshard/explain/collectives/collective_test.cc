#include "meshard/explain/collectives/collective.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

Collective all_reduce(std::string place, std::int64_t bytes) {
  return {.kind = CollectiveKind::kAllReduce,
          .instruction = "all-reduce." + place,
          .axes = AxisList({"model"}),
          .group_size = 4,
          .bytes_in = bytes,
          .bytes_out = bytes,
          .channel = 1,
          .origin = {.certainty = OriginCertainty::kExact,
                     .places = {{.node = 5, .op = "dot_general", .place = std::move(place)}}},
          .cause = CollectiveCause::kInserted};
}

TEST(Collective, OneLine) {
  EXPECT_EQ(all_reduce("demo.cc:42", 64 * 1024).to_string(),
            "all-reduce on axis \"model\", 64 KiB, from demo.cc:42 (exact), inserted");
}

TEST(Collective, SaysWhatIsUnusual) {
  Collective one = all_reduce("demo.cc:42", 16);
  one.cause = CollectiveCause::kUnknown;
  one.loop_depth = 2;
  one.executions = 24;
  one.conditional = true;
  one.axes = AxisList({AxisRef("data"), AxisRef("model", 2, 2)});
  one.origin = {};
  EXPECT_EQ(one.to_string(),
            "all-reduce on axes \"data\", \"model\":(2)2, 16 B x 24 if its branch is taken, "
            "from an unknown place");
  one.axes = std::nullopt;
  one.executions = 1;
  one.executions_known = false;
  one.conditional = false;
  one.form = CollectiveForm::kFused;
  EXPECT_EQ(
      one.to_string(),
      "all-reduce in groups of 4 that do not match mesh axes, 16 B per iteration of a loop of "
      "unknown length, fused, from an unknown place");
  one.axes = AxisList();
  one.executions_known = true;
  one.form = CollectiveForm::kPlain;
  EXPECT_EQ(one.to_string(), "all-reduce within each device, 16 B, from an unknown place");
}

TEST(Collective, ShiftsAndMergedPlaces) {
  Collective one = all_reduce("demo.cc:42", 16);
  one.kind = CollectiveKind::kCollectivePermute;
  one.shifts = {{{"data"}, 1, true}, {{"model"}, -1, false}};
  one.axes = AxisList({"data", "model"});
  one.cause = CollectiveCause::kAsked;
  one.origin.certainty = OriginCertainty::kMerged;
  one.origin.places.push_back({.node = 6, .op = "sum", .place = "demo.cc:42"});
  one.origin.places.push_back({.node = 7, .op = "sum", .place = "demo.cc:50"});
  EXPECT_EQ(
      one.to_string(),
      "collective-permute on axes \"data\", \"model\", moving \"data\" by +1 and \"model\" by "
      "-1 without wrapping, 16 B, from demo.cc:42, demo.cc:50 (merged), asked for");
}

TEST(CollectiveGroups, EqualOnesFromOneLineAreCountedTogether) {
  Collective other_op = all_reduce("demo.cc:42", 32);
  other_op.origin.places[0].node = 9;
  Collective other_axis = all_reduce("demo.cc:42", 8);
  other_axis.axes = AxisList({"data"});
  std::vector<CollectiveGroup> groups = group_collectives(
      {all_reduce("demo.cc:42", 16), all_reduce("demo.cc:50", 4), other_op, other_axis});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].count, 2);
  EXPECT_EQ(groups[0].bytes, 48);
  EXPECT_EQ(groups[0].bytes_in, 48);
  EXPECT_EQ(groups[0].to_string(),
            "2 all-reduces on axis \"model\", 48 B, from demo.cc:42 (exact), inserted");
  EXPECT_EQ(groups[1].to_string(),
            "1 all-reduce on axis \"model\", 4 B, from demo.cc:50 (exact), inserted");
  EXPECT_EQ(groups[2].count, 1);
}

TEST(CollectiveGroups, BytesOfAllExecutions) {
  Collective inside = all_reduce("demo.cc:42", 16);
  inside.loop_depth = 1;
  inside.executions = 12;
  std::vector<CollectiveGroup> groups = group_collectives({inside, inside});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].bytes, 32);
  EXPECT_EQ(groups[0].total_bytes, 384);
}

TEST(CollectiveGroups, FormsStandApart) {
  Collective fused = all_reduce("demo.cc:42", 16);
  fused.form = CollectiveForm::kFused;
  Collective next = fused;
  next.continues = true;
  EXPECT_EQ(group_collectives({all_reduce("demo.cc:42", 16), fused, next}).size(), 3u);
}

TEST(CollectiveGroups, NamesAndLayersAreListed) {
  Collective first = all_reduce("train.py:88", 16), second = first;
  first.origin.places[0].via = second.origin.places[0].via = "linear.py:287";
  first.purpose = {.kind = PurposeKind::kWeight, .names = {"w1"}, .layer = "b0"};
  second.purpose = {.kind = PurposeKind::kWeight, .names = {"w2"}, .layer = "b1"};
  first.purpose.phase = second.purpose.phase = ProgramPhase::kForward;
  Collective backward = second;
  backward.purpose.phase = ProgramPhase::kBackward;
  std::vector<CollectiveGroup> groups = group_collectives({first, second, backward});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].to_string(),
            "2 all-reduces of weights (w1, w2) on axis \"model\", 32 B, forward, from "
            "train.py:88, via linear.py:287 (exact), inserted");
  EXPECT_EQ(groups[0].layers, (std::vector<std::string>{"b0", "b1"}));
}

TEST(CollectiveGroups, LayersOfActivations) {
  Collective first = all_reduce("demo.cc:42", 16);
  first.purpose = {.kind = PurposeKind::kActivations, .layer = "b0"};
  EXPECT_EQ(first.to_string(),
            "all-reduce in b0 on axis \"model\", 16 B, from demo.cc:42 (exact), inserted");
}

TEST(CollectiveGroups, LoopsStandApart) {
  Collective inside = all_reduce("demo.cc:42", 16);
  inside.loop_depth = 1;
  EXPECT_EQ(group_collectives({all_reduce("demo.cc:42", 16), inside}).size(), 2u);
}

}  // namespace
}  // namespace meshard
