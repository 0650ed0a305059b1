// Reshards of compiled programs are tested in explain_for_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/trace/jit.h"

namespace meshard {
namespace {

// The warning of xla/service/spmd/spmd_partitioner.cc.
constexpr std::string_view kWarning =
    "W0000 00:00:1 spmd_partitioner.cc:652] [SPMD] Involuntary full rematerialization. The "
    "compiler was not able to go from sharding {devices=[1,2,4]<=[8] last_tile_dim_replicate} to "
    "{devices=[8,1]<=[8]} without doing a full rematerialization of the tensor for HLO operation: "
    "%add.3 = f32[16,32]{1,0} add(f32[16,32]{1,0} %x, f32[16,32]{1,0} %y), "
    "sharding={devices=[1,2,4]<=[8] last_tile_dim_replicate}, "
    "metadata={op_name=\"jit(step)/add\"}. You probably want to enrich the sharding annotations to "
    "prevent this from happening.\n";

TEST(Rematerializations, AreReadFromTheLog) {
  std::string log = "I0000 something else\n" + std::string(kWarning) + std::string(kWarning);
  std::vector<Reshard> found = rematerializations_in_log(log);
  ASSERT_EQ(found.size(), 2u);
  for (const Reshard& one : found) {
    EXPECT_EQ(one.kind, ReshardKind::kFullRematerialize);
    EXPECT_EQ(one.from, "{devices=[1,2,4]<=[8] last_tile_dim_replicate}");
    EXPECT_EQ(one.to, "{devices=[8,1]<=[8]}");
    EXPECT_EQ(one.type, "f32[16,32]");
    EXPECT_EQ(one.instruction, "add.3");
    ASSERT_EQ(one.origin.places.size(), 1u);
    EXPECT_EQ(one.origin.places[0].op, "jit(step)/add");
    EXPECT_EQ(one.who, CollectiveCause::kInserted);
  }
}

TEST(Rematerializations, ATruncatedWarningIsStillOne) {
  for (std::size_t size = 0; size <= kWarning.size(); ++size) {
    std::size_t expected =
        kWarning.substr(0, size).find("full rematerialization") != std::string_view::npos;
    EXPECT_EQ(rematerializations_in_log(kWarning.substr(0, size)).size(), expected) << size;
  }
}

Collective from(OriginPlace place, std::string instruction = "all-reduce.1") {
  Collective one;
  one.instruction = std::move(instruction);
  one.origin = {OriginCertainty::kExact, {std::move(place)}};
  return one;
}

Graph product() {
  Tensor x = abstract_tensor({4, 8}, DType::f32), w = abstract_tensor({8, 2}, DType::f32);
  const Tensor* arguments[] = {&x, &w};
  return internal::trace_function(
      arguments,
      [](std::span<const Tensor> given) { return std::vector<Tensor>{matmul(given[0], given[1])}; },
      SourceLocation::current());
}

TEST(CollectiveTensors, TheOpsResultAndTheArgument) {
  Graph graph = product();
  std::vector<Collective> found = {
      from({.node = graph.num_leaves(), .op = "dot_general", .place = "a.cc:1"}),
      from({.node = 1, .op = "argument 1", .place = "a.cc:2"}),
      from({.node = 99, .op = "add", .place = ""})};
  found = with_moves(found, {}, {}, &graph);
  EXPECT_EQ(found[0].tensor, "dot_general f32[4,2]");
  EXPECT_EQ(found[1].tensor, "argument 1 f32[8,2]");
  EXPECT_EQ(found[2].tensor, "");
}

TEST(CollectiveTensors, WhatAReshardingMovesComesFirst) {
  Graph graph = product();
  std::vector<Collective> found = {
      from({.node = graph.num_leaves(), .op = "dot_general", .place = ""}, "all-gather.7")};
  Reshard reshard;
  reshard.instruction = "all-gather.7";
  reshard.type = "f32[8,2]";
  found = with_moves(found, {reshard}, {}, &graph);
  EXPECT_EQ(found[0].tensor, "f32[8,2]");
}

TEST(CollectiveTensors, OfAModuleFromElsewhereTheValueWithThatName) {
  std::vector<Collective> found = {
      from({.node = std::nullopt, .op = "jit(f)/dot_general", .place = ""}),
      from({.node = std::nullopt, .op = "jit(f)/add", .place = ""})};
  ValuePlacement value;
  value.name = "jit(f)/dot_general";
  value.type = {DType::bf16, Shape{16, 32}};
  found = with_moves(found, {}, {value}, nullptr);
  EXPECT_EQ(found[0].tensor, "jit(f)/dot_general bf16[16,32]");
  EXPECT_EQ(found[1].tensor, "");
}

}  // namespace

}  // namespace meshard
