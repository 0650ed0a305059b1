#include "meshard/explain/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard {
namespace {

using testing::HasSubstr;

const Mesh kReportMesh({{"data", 2}, {"model", 4}});

ValuePlacement placed(const char* type, const PartitionSpec& spec) {
  TensorType parsed = TensorType::parse(type).value();
  return {.type = parsed,
          .padded = parsed,
          .sharding = Sharding(kReportMesh, spec, static_cast<std::size_t>(parsed.rank()))};
}

Collective collective(CollectiveKind kind, AxisList axes, std::int64_t bytes) {
  return {.kind = kind,
          .instruction = "c",
          .axes = std::move(axes),
          .bytes_in = bytes,
          .bytes_out = bytes};
}

TEST(ValuePlacement, ShardAndItsBytes) {
  ValuePlacement x = placed("f32[16,32]", P("data", none));
  EXPECT_EQ(x.shard().to_string(), "f32[8,32]");
  EXPECT_EQ(x.padding_bytes(), 0);
  EXPECT_EQ(x.to_string(), "f32[16,32] P(\"data\", none), shard f32[8,32], 1 KiB");
}

TEST(ValuePlacement, PaddingIsStated) {
  ValuePlacement x = placed("f32[5,3]", P("model", none));
  x.padded = TensorType::parse("f32[8,3]").value();
  x.chosen_by_compiler = true;
  // 3 rows of 3 floats too many, and each of the 2 data groups holds a copy.
  EXPECT_EQ(x.padding_bytes(), 3 * 3 * 4 * 2);
  EXPECT_EQ(x.to_string(),
            "f32[5,3] P(\"model\", none), shard f32[2,3], 24 B, padded to f32[8,3] (72 B wasted), "
            "the compiler's choice");
}

TEST(ValuePlacement, WithoutAMesh) {
  TensorType type = TensorType::parse("f32[4]").value();
  ValuePlacement x{.type = type, .padded = type, .sharding = std::nullopt};
  EXPECT_EQ(x.shard(), type);
  EXPECT_EQ(x.to_string(), "f32[4], 16 B");
}

TEST(MemoryUse, TextAndTotal) {
  MemoryUse memory{.arguments = 2048,
                   .outputs = 1024,
                   .aliased = 512,
                   .temporaries = 100,
                   .code = 7,
                   .peak = 3072};
  EXPECT_EQ(memory.total(), 2048 + 1024 - 512 + 100 + 7);
  EXPECT_EQ(memory.to_string(),
            "memory per device: peak 3 KiB; arguments 2 KiB, outputs 1 KiB, temporaries 100 B, "
            "aliased 512 B, code 7 B");
  memory.peak = 0;
  EXPECT_THAT(memory.to_string(), HasSubstr("device: arguments"));
}

ProgramReport report() {
  ProgramReport::Parts parts;
  parts.name = "step";
  parts.mesh = kReportMesh;
  parts.arguments = {placed("f32[16,32]", P("data", none)), placed("f32[4]", P(none))};
  parts.num_captured = 1;
  parts.results = {placed("f32[16,32]", P("data", none))};
  parts.memory = MemoryUse{.arguments = 1040, .outputs = 1024};
  parts.collectives = {collective(CollectiveKind::kAllReduce, {"model"}, 1024),
                       collective(CollectiveKind::kAllReduce, {"data"}, 16),
                       collective(CollectiveKind::kAllGather, {"model"}, 4),
                       collective(CollectiveKind::kAllReduce, {"model"}, 1024)};
  return ProgramReport(std::move(parts));
}

TEST(ProgramReport, Accessors) {
  ProgramReport r = report();
  EXPECT_EQ(r.collectives().size(), 4u);
  EXPECT_EQ(r.groups().size(), 3u);
  EXPECT_EQ(r.collectives(CollectiveKind::kAllReduce).size(), 3u);
  EXPECT_EQ(r.collectives(CollectiveKind::kAllReduce, {"model"}).size(), 2u);
  EXPECT_TRUE(r.collectives(CollectiveKind::kAllToAll).empty());
  EXPECT_EQ(r.collective_bytes(), 1024 + 16 + 4 + 1024);
}

TEST(ProgramReport, OneScreen) {
  EXPECT_EQ(report().to_string(),
            "program step on mesh<data=2, model=4>\n"
            "memory per device: arguments 1 KiB, outputs 1 KiB, temporaries 0 B, aliased 0 B, code "
            "0 B\n"
            "4 collectives, 2 KiB per device\n"
            "  2 all-reduces on axis \"model\", 2 KiB, from an unknown place\n"
            "  1 all-reduce on axis \"data\", 16 B, from an unknown place\n"
            "  1 all-gather on axis \"model\", 4 B, from an unknown place\n"
            "arguments (2)\n"
            "  0: f32[16,32] P(\"data\", none), shard f32[8,32], 1 KiB\n"
            "  1 (captured): f32[4] P(none), shard f32[4], 16 B\n"
            "results (1)\n"
            "  0: f32[16,32] P(\"data\", none), shard f32[8,32], 1 KiB\n");
}

TEST(ProgramReport, LeavesOutWhatDoesNotFitAndSaysSo) {
  std::string text = report().to_string({.most_lines = 1});
  EXPECT_THAT(text, HasSubstr("and 2 more lines of collectives"));
  EXPECT_THAT(text, HasSubstr("and 1 more arguments"));
  EXPECT_THAT(text, testing::Not(HasSubstr("all-gather")));
  EXPECT_THAT(report().to_string({.most_lines = 0}), HasSubstr("all-gather"));
}

TEST(ProgramReport, MeshPictureWhenAsked) {
  EXPECT_THAT(report().to_string(), testing::Not(HasSubstr("┌")));
  EXPECT_THAT(report().to_string({.mesh_picture = true}), HasSubstr("┌"));
}

TEST(ProgramReport, OnOneDevice) {
  ProgramReport r{{.name = "f"}};
  EXPECT_EQ(r.to_string(), "program f on one device\nno collectives\narguments (0)\nresults (0)\n");
}

}  // namespace
}  // namespace meshard
