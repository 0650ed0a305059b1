#include "meshard/explain/collectives/collective_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/trace/jit.h"

namespace meshard {
namespace {

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
  name_tensors(found, {}, {}, &graph);
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
  name_tensors(found, {reshard}, {}, &graph);
  EXPECT_EQ(found[0].tensor, "f32[8,2]");
}

TEST(CollectiveTensors, OfAModuleFromElsewhereTheValueWithThatName) {
  std::vector<Collective> found = {
      from({.node = std::nullopt, .op = "jit(f)/dot_general", .place = ""}),
      from({.node = std::nullopt, .op = "jit(f)/add", .place = ""})};
  ValuePlacement value;
  value.name = "jit(f)/dot_general";
  value.type = {DType::bf16, Shape{16, 32}};
  name_tensors(found, {}, {value}, nullptr);
  EXPECT_EQ(found[0].tensor, "jit(f)/dot_general bf16[16,32]");
  EXPECT_EQ(found[1].tensor, "");
}

}  // namespace
}  // namespace meshard
