#include "meshard/explain/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/base/cat.h"

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
  // 3 padding rows of 3 floats, and each of the 2 data groups holds a copy.
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

TEST(ProgramReport, ProcessesAreMarked) {
  Collective one = collective(CollectiveKind::kAllReduce, {"data"}, 2048), other = one;
  one.across_processes = true;
  ProgramReport::Parts parts{.name = "step", .mesh = kReportMesh, .collectives = {one, other}};
  parts.processes = MeshProcesses{2, {"data"}};
  parts.roofline = Roofline();
  parts.roofline->links = {{"\"data\"", "process link", 2048, 0.004}};
  parts.roofline->rates_known = false;
  std::string text = ProgramReport(parts).to_string();
  EXPECT_THAT(text, HasSubstr("2 processes; axis \"data\" crosses them\n"));
  EXPECT_THAT(text,
              HasSubstr("communication at least 4 ms a run; the rates of the device are unknown\n"
                        "  process link along \"data\" 4 ms\n"));
  EXPECT_THAT(text, HasSubstr("1 all-reduce on axis \"data\", 2 KiB, across processes, from"));
  EXPECT_EQ(ProgramReport(parts).groups().size(), 2u);
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
  memory.temporaries = 4096;
  EXPECT_EQ(memory.to_string(),
            "memory per device: allocated 6.5 KiB, of which at most 3 KiB are in use at one time; "
            "arguments 2 KiB, outputs 1 KiB, temporaries 4 KiB, aliased 512 B, code 7 B");
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
  EXPECT_THAT(text, HasSubstr("arguments (2) by sharding, with the bytes on one device\n"
                              "  1 x P(\"data\", none), 1 KiB, such as number 0 f32[16,32]\n"
                              "  and 1 more shardings\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("all-gather")));
  EXPECT_THAT(report().to_string({.most_lines = 0}), HasSubstr("all-gather"));
}

TEST(ProgramReport, WhatIsLeftOutIsTheSmallest) {
  ProgramReport::Parts parts{.name = "f"};
  for (std::int64_t bytes : {5, 40, 30})
    parts.collectives.push_back(collective(CollectiveKind::kAllReduce, {"model"}, bytes));
  parts.collectives[1].executions = 2;  // 80 in total
  parts.collectives[2].conditional = true;
  std::string text = ProgramReport(parts).to_string({.most_lines = 2});
  EXPECT_LT(text.find("40 B x 2"), text.find("30 B if"));
  EXPECT_THAT(text, HasSubstr("and 1 more lines of collectives"));
  EXPECT_THAT(text, testing::Not(HasSubstr(", 5 B")));
}

TEST(ProgramReport, MeshPictureWhenAsked) {
  EXPECT_THAT(report().to_string(), testing::Not(HasSubstr("┌")));
  EXPECT_THAT(report().to_string({.mesh_picture = true}), HasSubstr("┌"));
}

TEST(ProgramReport, TellsWhetherItFits) {
  ProgramReport::Parts parts{.name = "f"};
  parts.memory = MemoryUse{.arguments = 3 << 20, .temporaries = 1 << 20, .capacity = 5 << 20};
  EXPECT_THAT(ProgramReport(parts).to_string(),
              HasSubstr("\nfits: 4 MiB of 5 MiB, 1 MiB to spare\n"));
  parts.memory->capacity = 1 << 20;
  EXPECT_THAT(ProgramReport(parts).to_string(),
              HasSubstr("\ndoes not fit: 4 MiB of 1 MiB, 3 MiB too much\n"));
  parts.memory->capacity.reset();
  EXPECT_THAT(ProgramReport(parts).to_string(), testing::Not(HasSubstr("fit")));
}

TEST(ProgramReport, TellsTargetAndTime) {
  ProgramReport::Parts parts{.name = "f"};
  parts.target = {.name = "v5e:4x4",
                  .device_kind = "TPU v5 lite",
                  .devices = 16,
                  .compiler = "libtpu",
                  .compile_seconds = 2.5};
  parts.roofline = Roofline{.compute_seconds = 0.002,
                            .memory_seconds = 0.004,
                            .links = {{.axes = "\"data\"", .link = "ICI", .seconds = 0.003},
                                      {.axes = "\"slice\"", .link = "DCN", .seconds = 0.0005}},
                            .sources = {}};
  EXPECT_THAT(ProgramReport(parts).to_string(),
              HasSubstr("target v5e:4x4: 16 x TPU v5 lite; libtpu, compiled in 2.5 s\n"
                        "at least 4 ms a run, bound by memory: compute 2 ms, memory 4 ms, "
                        "communication 3.5 ms; at least 9.5 ms if nothing overlaps\n"
                        "  ICI along \"data\" 3 ms, DCN along \"slice\" 500 us\n"));
}

TEST(ProgramReport, ManyArgumentsAreToldBySharding) {
  ProgramReport::Parts parts{.name = "f", .mesh = kReportMesh};
  for (int i = 0; i < 12; ++i) {
    parts.arguments.push_back(placed("f32[1024,1024]", P("data", "model")));
    parts.arguments.push_back(placed("f32[4]", P(none)));
    parts.arguments.back().name = cat("bias", i);
  }
  // 12 arguments of 4 MiB in 8 shards, and 12 of 16 bytes.
  EXPECT_THAT(ProgramReport(parts).to_string(),
              HasSubstr("arguments (24) by sharding, with the bytes on one device\n"
                        "  12 x P(\"data\", \"model\"), 6 MiB, such as number 0 "
                        "f32[1024,1024]\n"
                        "  12 x P(none), 192 B, such as bias0 f32[4]\n"));
  EXPECT_THAT(ProgramReport(parts).to_string({.most_lines = 0}), HasSubstr("  23 bias11: f32[4]"));
}

TEST(ProgramReport, ReshardsLargestFirst) {
  ProgramReport::Parts parts{.name = "f"};
  parts.reshards = {{.type = "f32[8]", .bytes = 100},
                    {.type = "f32[9]", .bytes = 60, .executions = 2, .cause = "because"},
                    {.kind = ReshardKind::kFullRematerialize, .type = "f32[7]", .bytes = 7}};
  std::string text = ProgramReport(parts).to_string();
  EXPECT_THAT(text, HasSubstr("3 reshards, 1 by full rematerialization\n"
                              "  gather of f32[9]"));
  EXPECT_LT(text.find("because\n  gather of f32[8]"), text.find("  full rematerialization"));
}

// A report whose every list is longer than a screen.
TEST(ProgramReport, FitsOneScreen) {
  ProgramReport::Parts parts{.name = "f", .mesh = kReportMesh};
  parts.target = {.name = "cpu:8", .device_kind = "cpu", .compiler = "x"};
  parts.memory = MemoryUse{.capacity = 1};
  parts.roofline =
      Roofline{.links = {{.axes = "", .link = "ICI"}, {.axes = "", .link = "DCN"}}, .sources = {}};
  for (int i = 0; i < 40; ++i) {
    ValuePlacement value = placed("f32[64,64]", P("data"));
    if (i % 2 == 0) value = placed("f32[64,64]", P(AxisRef("model", 1, 2), "data"));
    parts.arguments.push_back(value);
    parts.results.push_back(value);
    parts.intermediates.push_back(value);
    parts.collectives.push_back(collective(CollectiveKind::kAllReduce, {"model"}, 8));
    parts.collectives.back().executions = i + 1;
    parts.reshards.push_back({.bytes = i});
    parts.largest_buffers.push_back({.name = "b", .type = "f32[1]", .bytes = 4, .place = ""});
    parts.timeline.push_back({.instruction = "i", .opcode = "add", .place = ""});
    parts.notes.push_back("note");
  }
  std::string text = ProgramReport(parts).to_string();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 50);
  for (const char* left_out :
       {"and 32 more lines of collectives", "and 36 more reshards", "and 36 more buffers",
        "and 36 more notes", "not listed: 40 intermediate values, 40 steps of the timeline"})
    EXPECT_THAT(text, HasSubstr(left_out));
}

TEST(ProgramReport, ALongListOfDevicesIsCounted) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 100; ++i) ids.push_back((i * 7) % 101);
  ProgramReport report({.name = "f", .mesh = Mesh({{"x", 100}}, ids)});
  EXPECT_THAT(report.to_string(), HasSubstr("program f on mesh<x=100> of 100 devices\n"));
}

TEST(ProgramReport, OnOneDevice) {
  ProgramReport r{{.name = "f"}};
  EXPECT_EQ(r.to_string(), "program f on one device\nno collectives\narguments (0)\nresults (0)\n");
}

ValuePlacement argument(const char* name, Shape shape, const Mesh& mesh,
                        const PartitionSpec& spec) {
  TensorType type{DType::f32, std::move(shape)};
  return {.name = name,
          .type = type,
          .padded = type,
          .sharding = Sharding(mesh, spec, static_cast<std::size_t>(type.rank()))};
}

// By hand: device 6 is at (0, 0), 4 at (0, 1), 5 at (1, 0), 7 at (1, 1).
TEST(ArgumentMatrix, HasTheDevicesOfASubmeshAndTheirParts) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {6, 4, 5, 7});
  ProgramReport::Parts parts{.name = "main"};
  parts.mesh = mesh;
  parts.arguments = {argument("w", {4, 6}, mesh, P("x", "y")), argument("", {3}, mesh, P("y")),
                     argument("scale", {}, mesh, P()), argument("late", {1}, mesh, P("x"))};
  ProgramReport report(parts);
  EXPECT_EQ(argument_matrix(report),
            "device  0 w      1    2 scale  3 late\n"
            "6       0:2,0:3  0:2  all      0:1\n"
            "4       0:2,3:6  2:3  all      0:1\n"
            "5       2:4,0:3  0:2  all      empty\n"
            "7       2:4,3:6  2:3  all      empty\n");
  EXPECT_THAT(argument_matrix(report, 1), testing::EndsWith("0:1\nand 3 more devices\n"));
  EXPECT_THAT(report.to_string({.argument_matrix = true}),
              testing::HasSubstr("\n7       2:4,3:6  2:3  all      empty\n"));
  EXPECT_THAT(report.to_string(), testing::Not(testing::HasSubstr("2:4,3:6")));
}

// For a sharding over the same devices in another order, parts are looked up by device id.
TEST(ArgumentMatrix, GoesByDeviceAndNotByPosition) {
  Mesh mesh({{"x", 2}}, {1, 0}), other({{"z", 2}}, {0, 1});
  ProgramReport::Parts parts{.name = "main"};
  parts.mesh = mesh;
  parts.arguments = {argument("a", {2}, mesh, P("x")), argument("b", {2}, other, P("z"))};
  EXPECT_EQ(argument_matrix(ProgramReport(parts)),
            "device  0 a  1 b\n"
            "1       0:1  1:2\n"
            "0       1:2  0:1\n");
}

TEST(ArgumentMatrix, OfAProgramOnOneDevice) {
  ProgramReport::Parts parts{.name = "main"};
  TensorType type{DType::f32, {2}};
  parts.arguments = {{.name = "a", .type = type, .padded = type, .sharding = std::nullopt}};
  EXPECT_EQ(argument_matrix(ProgramReport(parts)), "device  0 a\nsingle  all\n");
}

}  // namespace

}  // namespace meshard
