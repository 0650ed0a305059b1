#include "meshard/report/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

const Mesh kDiffMesh({{"data", 2}, {"model", 4}});

Collective diff_collective(CollectiveKind kind, AxisList axes, std::int64_t bytes,
                           const char* place) {
  return {.kind = kind,
          .instruction = "c",
          .axes = std::move(axes),
          .bytes_out = bytes,
          .origin = {.certainty = OriginCertainty::kExact,
                     .places = {{.node = {}, .op = "dot", .place = place}}}};
}

ValuePlacement diff_value(const char* name, const PartitionSpec& spec) {
  TensorType type{DType::f32, Shape{16, 32}};
  return {.name = name, .type = type, .padded = type, .sharding = Sharding(kDiffMesh, spec, 2)};
}

ProgramReport::Parts diff_parts() {
  ProgramReport::Parts parts{.name = "step"};
  parts.mesh = kDiffMesh;
  parts.target.name = "v5e:2x4";
  parts.arguments = {diff_value("x", P("data")), diff_value("w", P(none, "model"))};
  parts.results = {diff_value("", P("data"))};
  parts.collectives = {diff_collective(CollectiveKind::kAllReduce, {"model"}, 1024, "a.cc:1"),
                       diff_collective(CollectiveKind::kAllReduce, {"model"}, 1024, "a.cc:2")};
  parts.memory = MemoryUse{.arguments = 2048, .outputs = 1024, .peak = 3072};
  parts.roofline.emplace();
  parts.roofline->compute_seconds = 0.002;
  parts.roofline->memory_seconds = 0.001;
  return parts;
}

ProgramReport::Parts changed_parts() {
  ProgramReport::Parts parts = diff_parts();
  parts.arguments[1] = diff_value("w", P("model"));
  parts.collectives[0].executions = 12;
  parts.collectives[1] = diff_collective(CollectiveKind::kAllGather, {"data"}, 512, "a.cc:2");
  parts.memory->arguments = 4096;
  parts.roofline->memory_seconds = 0.003;
  parts.reshards = {{.type = "f32[16,32]", .bytes = 512, .cause = "the product needs it whole"}};
  parts.largest_buffers = {{.name = "fusion.1", .type = "f32[16,32]", .bytes = 2048, .place = ""}};
  return parts;
}

TEST(Diff, OfAProgramWithItselfIsEmpty) {
  ReportDiff same = diff(ProgramReport(diff_parts()), ProgramReport(diff_parts()));
  EXPECT_TRUE(same.same());
  EXPECT_THAT(same.to_string(), HasSubstr("no difference"));
  EXPECT_EQ(same.collectives.size(), 2u);
  EXPECT_TRUE(same.placements.empty());
  EXPECT_THAT(to_html(same), HasSubstr("No difference"));
}

TEST(Diff, EveryPartThatChanged) {
  ReportDiff found = diff(ProgramReport(diff_parts()), ProgramReport(changed_parts()));
  EXPECT_FALSE(found.same());
  ASSERT_EQ(found.collectives.size(), 3u);
  EXPECT_EQ(found.collectives[0].to_string(),
            "~ 1 all-reduce on \"model\", 1 KiB → 12 KiB in 12 runs, from a.cc:1");
  EXPECT_EQ(found.collectives[1].to_string(), "- 1 all-reduce on \"model\", 1 KiB, from a.cc:2");
  EXPECT_EQ(found.collectives[2].to_string(), "+ 1 all-gather on \"data\", 512 B, from a.cc:2");
  EXPECT_EQ(found.after.collective_bytes, 12 * 1024 + 512);
  ASSERT_EQ(found.placements.size(), 1u);
  EXPECT_EQ(found.placements[0].value, "argument 1 w");
  EXPECT_THAT(found.placements[0].before, HasSubstr("P(none, \"model\")"));
  EXPECT_THAT(found.placements[0].after, HasSubstr("P(\"model\""));
  EXPECT_EQ(found.reshards.size(), 1u);
  EXPECT_EQ(found.buffers.size(), 1u);
}

TEST(Diff, OneScreen) {
  std::string text = diff(ProgramReport(diff_parts()), ProgramReport(changed_parts())).to_string();
  EXPECT_THAT(text, HasSubstr("time at least, by the roofline: 2 ms → 3 ms (+50%)\n"));
  EXPECT_THAT(text, HasSubstr("bound by compute → memory\n"));
  EXPECT_THAT(text, HasSubstr("memory per device: 3 KiB → 5 KiB (+2 KiB)\n"));
  EXPECT_THAT(text, HasSubstr("  arguments 2 KiB → 4 KiB (+2 KiB)\n"));
  EXPECT_THAT(text, Not(HasSubstr("  outputs")));
  EXPECT_THAT(text, HasSubstr("collectives: 2, 2 KiB → 12.5 KiB (+10.5 KiB) per device and run\n"));
  EXPECT_THAT(text, HasSubstr("reshards\n  + gather of f32[16,32], 512 B"));
  EXPECT_THAT(text, HasSubstr("the product needs it whole"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 30);
}

TEST(Diff, TheEstimateShowsWhatIsNoLongerHidden) {
  ProgramReport::Parts hidden = diff_parts(), exposed = diff_parts();
  hidden.schedule =
      Schedule{.seconds = 0.002, .busy_seconds = 0.002, .links = {.hidden_seconds = 0.001}};
  exposed.schedule =
      Schedule{.seconds = 0.003, .busy_seconds = 0.002, .links = {.exposed_seconds = 0.001}};
  ReportDiff found = diff(ProgramReport(hidden), ProgramReport(exposed));
  EXPECT_FALSE(found.same());
  EXPECT_THAT(found.to_string(), HasSubstr("estimated time, by the schedule: 2 ms → 3 ms (+50%)\n"
                                           "  exposed communication 0 ns → 1 ms\n"
                                           "  hidden communication 1 ms → 0 ns (-100%)\n"));
  EXPECT_THAT(to_html(found), HasSubstr("Time by the schedule"));
  EXPECT_THAT(
      to_json(found),
      HasSubstr(R"("estimated_seconds":[{"part":"estimated","before":0.002,"after":0.003})"));
  // A baseline of an earlier version has no schedule, which makes no difference.
  exposed.schedule.reset();
  EXPECT_TRUE(diff(ProgramReport(hidden), ProgramReport(exposed)).same());
}

TEST(Diff, LongListsAreCutAndCounted) {
  ProgramReport::Parts many = diff_parts();
  for (int i = 0; i < 20; ++i)
    many.collectives.push_back(diff_collective(CollectiveKind::kAllToAll, {"data"}, 8,
                                               ("b.cc:" + std::to_string(i)).c_str()));
  ReportDiff found = diff(ProgramReport(diff_parts()), ProgramReport(many));
  EXPECT_THAT(found.to_string(5), HasSubstr("and 15 more\n"));
  EXPECT_THAT(found.to_string(5), HasSubstr("  2 unchanged\n"));
  EXPECT_THAT(found.to_string(0), HasSubstr("b.cc:19"));
}

TEST(Diff, ArgumentsArePairedByName) {
  ProgramReport::Parts swapped = diff_parts();
  std::swap(swapped.arguments[0], swapped.arguments[1]);
  EXPECT_TRUE(diff(ProgramReport(diff_parts()), ProgramReport(swapped)).same());
  swapped.arguments.pop_back();
  ReportDiff found = diff(ProgramReport(diff_parts()), ProgramReport(swapped));
  ASSERT_EQ(found.placements.size(), 1u);
  EXPECT_THAT(found.placements[0].to_string(), HasSubstr("- argument 0 x: f32[16,32]"));
  // Values without names are compared by position.
  ProgramReport::Parts unnamed = diff_parts(), other = diff_parts();
  for (ProgramReport::Parts* parts : {&unnamed, &other})
    for (ValuePlacement& value : parts->arguments) value.name.clear();
  std::swap(other.arguments[0], other.arguments[1]);
  EXPECT_EQ(diff(ProgramReport(unnamed), ProgramReport(other)).placements.size(), 2u);
}

TEST(Diff, BackwardIsTheOpposite) {
  ReportDiff there = diff(ProgramReport(diff_parts()), ProgramReport(changed_parts()));
  ReportDiff back = diff(ProgramReport(changed_parts()), ProgramReport(diff_parts()));
  EXPECT_EQ(there.before, back.after);
  for (std::size_t i = 0; i < there.memory.size(); ++i) {
    EXPECT_EQ(there.memory[i].before, back.memory[i].after);
    EXPECT_EQ(there.memory[i].after, back.memory[i].before);
  }
  EXPECT_EQ(there.placements.size(), back.placements.size());
}

TEST(Diff, JsonAndPageEscapeNames) {
  ProgramReport::Parts parts = changed_parts();
  parts.name = "<script>alert(1)</script>\"";
  parts.arguments[1].name = "<b>&'";
  ReportDiff found = diff(ProgramReport(diff_parts()), ProgramReport(parts));
  std::string page = to_html(found);
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  std::string json = to_json(found);
  EXPECT_THAT(json, HasSubstr(R"("schema":"meshard.diff","version":1,"same":false)"));
  EXPECT_THAT(json, HasSubstr(R"(</script>\" on mesh)"));
  EXPECT_THAT(json, HasSubstr(R"("after":{"count":1,"executions":12,"bytes":12288})"));
}

}  // namespace
}  // namespace meshard
