// plan() of a model with nn::Layers, whose layers become one loop of the program, against the same
// model with a vector of layers.
#include <gmock/gmock.h>

#include "meshard/meshard.h"
#include "meshard/plan/plan.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

constexpr std::int64_t kPlannedLayers = 6, kPlannedWidth = 64, kPlannedHidden = 256;

struct PlannedBlock {
  Tensor up, down;
  MESHARD_FIELDS(up, down)
};

// The gradients of a mean square, for data split by "data".
template <class Blocks>
TracedProgram planned_step(const Mesh& mesh, const Blocks& blocks) {
  auto loss = [](const Blocks& all, Tensor x) {
    for (const PlannedBlock& block : all) x = x + matmul(tanh(matmul(x, block.up)), block.down);
    return mean(square(x));
  };
  return trace_program(value_and_grad(loss), blocks,
                       abstract_tensor({128, kPlannedWidth}, DType::f32, mesh, P("data", none)));
}

// @param stacked whether it is that of all layers
PlannedBlock block_on(const Mesh& mesh, const std::vector<PartitionSpec>& specs, bool stacked) {
  auto make = [&](std::int64_t rows, std::int64_t columns, const PartitionSpec& spec) {
    Dimensions sizes{rows, columns};
    std::vector<DimensionSpec> dimensions(spec.dimensions());
    if (stacked) {
      sizes.insert(sizes.begin(), kPlannedLayers);
      dimensions.insert(dimensions.begin(), none);
    }
    return abstract_tensor(Shape(sizes), DType::f32, mesh, PartitionSpec(std::move(dimensions)));
  };
  return {make(kPlannedWidth, kPlannedHidden, specs.at(0)),
          make(kPlannedHidden, kPlannedWidth, specs.at(1))};
}

using PlanLayers = OnDevices;

TEST_F(PlanLayers, TheLoopHasTheBestShardingOfTheVector) {
  Target target = Target::parse("cpu:8").value();
  std::vector<FreeValue> values{
      {"up", {DType::f32, {kPlannedWidth, kPlannedHidden}}, P(unconstrained, unconstrained)},
      {"down", {DType::f32, {kPlannedHidden, kPlannedWidth}}, P(unconstrained, unconstrained)}};
  PlanOptions options{.most_compiled = 1};
  PlanResult looped = plan(
      target, {"data", "model"}, values,
      [](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
        return planned_step(mesh, nn::Layers<PlannedBlock>{block_on(mesh, specs, true)});
      },
      options);
  PlanResult separate = plan(
      target, {"data", "model"}, values,
      [](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
        return planned_step(
            mesh, std::vector<PlannedBlock>(kPlannedLayers, block_on(mesh, specs, false)));
      },
      options);
  ASSERT_TRUE(looped.anything_fits()) << looped.to_string();
  ASSERT_TRUE(separate.anything_fits()) << separate.to_string();
  EXPECT_EQ(looped.ranking[0].candidate, separate.ranking[0].candidate);
  // Only the loss and the gradients move much: weights are not gathered.
  EXPECT_EQ(looped.ranking[0].candidate.specs,
            (std::vector<PartitionSpec>{P(none, "model"), P("model", none)}));
  EXPECT_GT(looped.ranking[0].estimate.communication, 0);
}

}  // namespace
}  // namespace meshard
