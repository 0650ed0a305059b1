#include "meshard/report/expect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/dot_general.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Mesh kExpectMesh({{"data", 2}, {"model", 4}});

Collective expect_collective(const char* name, CollectiveKind kind, AxisList axes,
                             std::int64_t bytes) {
  return {.kind = kind,
          .instruction = name,
          .axes = std::move(axes),
          .bytes_in = bytes,
          .origin = {.certainty = OriginCertainty::kExact,
                     .places = {{.node = {}, .op = "dot_general", .place = "layer.cc:7"}}}};
}

ProgramReport::Parts two_reduces_and_a_gather() {
  ProgramReport::Parts parts{.name = "step"};
  parts.mesh = kExpectMesh;
  parts.collectives = {expect_collective("ar.1", CollectiveKind::kAllReduce, {"model"}, 1024),
                       expect_collective("ar.2", CollectiveKind::kAllReduce, {"data", "model"}, 16),
                       expect_collective("ag.1", CollectiveKind::kAllGather, {"model"}, 100)};
  parts.collectives[2].executions = 12;
  parts.reshards = {{.instruction = "ag.1", .cause = "matmul needs all of dimension 1"}};
  return parts;
}

std::vector<std::string> broken(const ProgramReport& report, const char* expected) {
  return check_expectations(report, {.collectives = ExpectedCollectives(expected)}).broken;
}

TEST(ExpectCollectives, ExactlyThese) {
  ProgramReport report(two_reduces_and_a_gather());
  expect_collectives(report,
                     "1 all-reduce over model; 1 all-reduce over model, data; 1 all-gather");
  expect_collectives(report, {{.kind = CollectiveKind::kAllReduce, .count = 2},
                              {.kind = CollectiveKind::kAllGather, .axes = AxisList{"model"}}});
  expect_collectives(ProgramReport({.name = "f"}), "no collectives");
}

TEST(ExpectCollectives, NamedAxesComeFirst) {
  ProgramReport report(two_reduces_and_a_gather());
  EXPECT_TRUE(broken(report, "1 all-reduce; 1 all-reduce over model; any all-gathers").empty());
  EXPECT_THAT(broken(report, "2 all-reduces; 1 all-reduce over model; any all-gathers"),
              ElementsAre(HasSubstr("expected 2 all-reduces, found 1:")));
}

TEST(ExpectCollectives, TooManyAreShownWithLineAndCause) {
  ProgramReport report(two_reduces_and_a_gather());
  EXPECT_THAT(broken(report, "1 all-reduce over model; 1 all-reduce over data, model"),
              ElementsAre("expected no other collectives, found 1:\n"
                          "  all-gather on axis \"model\", 100 B x 12, from layer.cc:7 (exact)\n"
                          "    because matmul needs all of dimension 1"));
  EXPECT_TRUE(throws_error([&] { expect_collectives(report, "no collectives"); },
                           ErrorCode::kFailedPrecondition,
                           {"expect_test.cc", "[expect_collectives] program step on mesh",
                            "expected no collectives, found 3", "layer.cc:7"}));
}

TEST(ExpectCollectives, AxesThatNoMeshHas) {
  ProgramReport report(two_reduces_and_a_gather());
  EXPECT_THAT(
      broken(report, "no all-to-all over modle; others allowed"),
      ElementsAre("expected no all-to-all over \"modle\", but no mesh of the program has an "
                  "axis \"modle\"; the nearest names are \"model\", \"data\""));
  EXPECT_TRUE(broken(report, "no all-to-all over model; others allowed").empty());
}

TEST(ExpectCollectives, MissingOnes) {
  ProgramReport report(two_reduces_and_a_gather());
  EXPECT_THAT(broken(report, "1 all-reduce over data; others allowed"),
              ElementsAre("expected 1 all-reduce over \"data\", found none"));
  EXPECT_THAT(broken(report, "at most 1 all-reduce; 2 all-gathers; others allowed").size(), 2u);
  EXPECT_TRUE(broken(report, "at most 3 all-reduces; others allowed").empty());
}

TEST(ExpectCollectives, BytesCountEveryExecution) {
  ProgramReport report(two_reduces_and_a_gather());
  EXPECT_TRUE(broken(report, "1 all-gather, at most 1200 B; others allowed").empty());
  EXPECT_THAT(broken(report, "1 all-gather, at most 1199 B; others allowed"),
              ElementsAre(HasSubstr("found 1200 bytes:")));
}

ValuePlacement expect_value(const char* name, const char* type, const PartitionSpec& spec) {
  TensorType parsed = TensorType::parse(type).value();
  return {.name = name,
          .place = "net.cc:3",
          .type = parsed,
          .padded = parsed,
          .sharding = Sharding(kExpectMesh, spec, static_cast<std::size_t>(parsed.rank()))};
}

TEST(ExpectNoFullReplication, OnlyWhatTheMeshCouldSplit) {
  ProgramReport::Parts parts{.name = "step"};
  parts.mesh = kExpectMesh;
  parts.arguments = {expect_value("w", "f32[512,512]", P()),      // 1 MiB
                     expect_value("odd", "f32[1025,513]", P()),   // not divisible by 2 or 4
                     expect_value("small", "f32[511,512]", P()),  // below 1 MiB
                     expect_value("split", "f32[512,512]", P("data"))};
  ExpectationReport found =
      check_expectations(ProgramReport(parts), {.no_full_replication = FullReplicationOptions{}});
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0],
            "expected no full replication above 1 MiB, found 1:\n"
            "  argument 0 w f32[512,512], 1 MiB on each of 8 devices, from net.cc:3: axis \"data\" "
            "divides dimension 0");
  EXPECT_EQ(check_expectations(ProgramReport(parts),
                               {.no_full_replication = FullReplicationOptions{.least_bytes = 1}})
                .broken[0]
                .find("found 2"),
            std::string("expected no full replication above 1 B, ").size());
  for (const char* name : {"w", "*", "argument 0"})
    expect_no_full_replication(ProgramReport(parts), {.except = {name}});
  EXPECT_THAT(
      check_expectations(ProgramReport(parts),
                         {.no_full_replication = FullReplicationOptions{.except = {"od", "x*"}}})
          .broken,
      ElementsAre(HasSubstr("matches the exception \"od\"; the nearest names are \"odd\""),
                  HasSubstr("matches the exception \"x*\""), HasSubstr("found 1")));
}

TEST(ExpectNoFullReplication, ResultsIntermediatesAndRematerialization) {
  ProgramReport::Parts parts{.name = "step"};
  parts.mesh = kExpectMesh;
  parts.results = {expect_value("", "f32[512,512]", P())};
  parts.intermediates = {expect_value("dot", "f32[512,512]", P())};
  parts.reshards = {{.kind = ReshardKind::kFullRematerialize, .bytes = 1 << 20, .cause = "why"},
                    {.kind = ReshardKind::kGather, .bytes = 1 << 20}};
  EXPECT_TRUE(throws_error(
      [&] { expect_no_full_replication(ProgramReport(parts)); }, ErrorCode::kFailedPrecondition,
      {"found 3", "result 0 f32", "intermediate 0 dot", "full rematerialization", "why"}));
}

TEST(ExpectFits, AgainstTheDevicesMemory) {
  ProgramReport::Parts parts{.name = "step"};
  parts.memory = MemoryUse{.arguments = 900, .capacity = 1000};
  expect_fits(ProgramReport(parts));
  expect_fits(ProgramReport(parts), 0.1);
  EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts), 0.2); },
                           ErrorCode::kFailedPrecondition,
                           {"fit into 1000 B less 200 B spare", "100 bytes too many"}));
  EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts), 1.0); },
                           ErrorCode::kInvalidArgument, {"margin"}));
  parts.out_of_memory = "Used 17.39G of 15.75G hbm";
  EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts)); },
                           ErrorCode::kFailedPrecondition, {"the compiler says: Used 17.39G"}));
  parts.out_of_memory.clear();
  parts.memory->capacity.reset();
  EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts)); },
                           ErrorCode::kFailedPrecondition, {"memory is not known", "topology"}));
  // Virtual devices of a CPU share the machine's memory.
  for (const char* name : {"cpu", "cpu:8"}) {
    parts.target.name = name;
    parts.target.devices = 8;
    expect_fits(ProgramReport(parts));
    parts.memory->arguments = std::int64_t{1} << 50;
    EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts)); },
                             ErrorCode::kFailedPrecondition,
                             {"this machine's memory by 8 CPU devices", "it needs 1 PiB"}));
    parts.memory->arguments = 900;
  }
  parts.memory.reset();
  EXPECT_TRUE(throws_error([&] { expect_fits(ProgramReport(parts)); },
                           ErrorCode::kFailedPrecondition, {"did not report"}));
}

const bool kExpectRuntime = install_runtime();

// The textbook case: a product whose contracted dimension is split ends with one all-reduce.
TEST(ExpectCompiled, AJittedFunctionAndItsProgram) {
  ASSERT_TRUE(kExpectRuntime);
  if (std::string reason = why_no_plugin(); !reason.empty())
    GTEST_SKIP() << "no CPU plugin: " << reason;
  auto layer = jit([](Tensor x, Tensor w) {
    return dot_general(x, w, {.lhs_contracting = {1}, .rhs_contracting = {0}});
  });
  EXPECT_TRUE(throws_error([&] { expect_collectives(layer, "no collectives"); },
                           ErrorCode::kFailedPrecondition, {"call it first"}));
  auto value = [](Shape shape, const PartitionSpec& spec) {
    std::vector<float> ones(static_cast<std::size_t>(shape.size()), 1.0f);
    return mark_sharding(from_host(std::move(ones), std::move(shape)), kExpectMesh, spec);
  };
  layer(value({16, 32}, P("data", "model")), value({32, 64}, P("model", none)));
  expect_collectives(layer, "1 all-reduce over model, at most 2 KiB");  // 8 x 64 floats
  expect_collectives(*layer.programs()[0], "1 all-reduce over model");
  EXPECT_TRUE(throws_error([&] { expect_collectives(layer, "1 all-reduce over data"); },
                           ErrorCode::kFailedPrecondition,
                           {"expected no other", "expect_test.cc"}));
  expect_no_full_replication(layer, {.least_bytes = 0});
}

}  // namespace
}  // namespace meshard
