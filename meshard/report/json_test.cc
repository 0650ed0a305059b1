// Checks parts of the JSON text; tests/report validates it against the schema and reads it back.
#include "meshard/report/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/report/sample_report_testutil.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportJson, AnEmptyReportHasEveryMember) {
  EXPECT_EQ(
      to_json(ProgramReport({.name = "f"})),
      R"({"schema":"meshard.report","version":1,"name":"f","target":{"name":"",)"
      R"("device_kind":"","devices":1,"compiler":"","compile_seconds":0},"meshes":[],)"
      R"("mesh":null,"topology":null,"processes":null,"arguments":[],"num_captured":0,"results":[],)"
      R"("intermediates":[],"collectives":[],"logical_collectives":[],"layers":[],"reshards":[],)"
      R"("out_of_memory":"","fits":true,"memory":null,)"
      R"("largest_buffers":[],"cost":{"flops":[],"memory_bytes":0,"transcendentals":0,)"
      R"("loops_known":true},"roofline":null,"schedule":null,"custom_calls":[],)"
      R"("host_transfers":null,"measured":null,"timeline":[],"notes":[]})");
}

TEST(ReportJson, ShardingsNameTheirMesh) {
  Mesh mesh({{"x", 2}, {"y", 4}}, {7, 6, 5, 4, 3, 2, 1, 0}), other({{"z", 2}});
  TensorType type = TensorType::parse("f32[6,4]").value();
  AxisRef half("y", 2, 2);
  ProgramReport::Parts parts{.name = "f", .mesh = mesh};
  parts.arguments = {
      {.type = type, .padded = type, .sharding = Sharding(mesh, P({"x", half}, unconstrained))},
      {.type = type, .padded = type, .sharding = Sharding(other, P(none, "z"))}};
  std::string text = to_json(ProgramReport(parts));
  EXPECT_THAT(text, HasSubstr(R"("device_ids":[7,6,5,4,3,2,1,0])"));
  EXPECT_THAT(text, HasSubstr(R"("mesh":0,"topology")"));
  EXPECT_THAT(
      text, HasSubstr(R"j({"mesh":0,"spec":"P({\"x\", \"y\":(2)2}, unconstrained)","dimensions":[)j"
                      R"j({"axes":["x",{"axis":"y","pre_size":2,"size":2}],"open":false},)j"
                      R"j({"axes":[],"open":true}],"replicated":[],"unreduced":[]})j"));
  // 6 rows in 4 shards: 2 rows each.
  EXPECT_THAT(text, HasSubstr(R"("shard":"f32[2,4]","shard_bytes":32)"));
  EXPECT_THAT(text, HasSubstr(R"j({"mesh":1,"spec":"P(none, \"z\")")j"));
}

TEST(ReportJson, PendingMaximaAreRead) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  TensorType type = TensorType::parse("f32[6,4]").value();
  ProgramReport::Parts parts{.name = "f", .mesh = mesh};
  for (UnreducedKind kind : {UnreducedKind::kSum, UnreducedKind::kMax, UnreducedKind::kMin})
    parts.arguments.push_back({.type = type,
                               .padded = type,
                               .sharding = Sharding(mesh, P("x"), 2).with_unreduced({"y"}, kind)});
  const std::string text = to_json(ProgramReport(parts));
  EXPECT_THAT(text, HasSubstr(R"("unreduced":["y"]})"));
  EXPECT_THAT(text, HasSubstr(R"("unreduced":["y"],"unreduced_kind":"max"})"));
  const ProgramReport read = read_report(text).value();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(read.arguments()[i].sharding, parts.arguments[i].sharding);
  EXPECT_THAT(read.arguments()[2].to_string(), HasSubstr("unreduced min{\"y\"}"));
}

TEST(ReportJson, KeepsEveryDigit) {
  ProgramReport::Parts parts{.name = "f"};
  parts.memory = MemoryUse{.arguments = (std::int64_t{1} << 60) + 1};
  parts.cost.memory_bytes = 0.1;
  parts.target.compile_seconds = 1.0 / 0.0;
  std::string text = to_json(ProgramReport(parts));
  EXPECT_THAT(text, HasSubstr("1152921504606846977"));  // 2^60 + 1 is not a double
  EXPECT_THAT(text, HasSubstr("\"memory_bytes\":0.1,"));
  EXPECT_THAT(text, HasSubstr("\"compile_seconds\":null"));
}

TEST(ReportJson, HostileTextsAreText) {
  std::string text = to_json(ProgramReport(hostile_parts()));
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  EXPECT_THAT(text, HasSubstr(R"(\"'&\\<!--\u0001)"));
}

TEST(ReportJson, IndentedSaysTheSame) {
  // No text of the sample has a line break, so all white space after one is indentation.
  std::string compact = to_json(ProgramReport(sample_parts()));
  std::string indented = to_json(ProgramReport(sample_parts()), 1), joined;
  for (std::size_t i = 0; i < indented.size(); ++i) {
    if (indented[i] == '\n') {
      while (i + 1 < indented.size() && indented[i + 1] == ' ') ++i;
      continue;
    }
    joined += indented[i];
    // The space between a key and its value.
    if (indented[i] == ':' && indented[i - 1] == '"' && indented[i + 1] == ' ') ++i;
  }
  EXPECT_EQ(joined, compact);
}

}  // namespace
}  // namespace meshard
