#include "meshard/explain/collectives/layer_traffic.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

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
