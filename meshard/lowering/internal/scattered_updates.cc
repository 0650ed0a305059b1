#include "meshard/lowering/internal/scattered_updates.h"

#include <algorithm>

#include "meshard/graph/attributes.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/scatter.h"

namespace meshard {
namespace {

constexpr std::size_t kIndices = 1, kUpdates = 2;

}  // namespace

std::optional<Sharding> even_for_scatter(const Node& node, std::size_t operand, const Mesh& mesh) {
  if (operand != kIndices && operand != kUpdates) return std::nullopt;
  if (!node.attributes() || node.attributes()->type() != typeid(ScatterAttributes))
    return std::nullopt;
  const auto& scatter = node.attributes_as<ScatterAttributes>();
  auto is_of_indices = [&](std::int64_t d) {
    if (operand == kIndices) return d != scatter.index_vector_dim;
    const Dimensions& window = scatter.update_window_dims;
    return std::find(window.begin(), window.end(), d) == window.end();
  };
  const Shape& shape = node.operands()[operand].type().shape;
  std::vector<DimensionSpec> dimensions;
  bool closes = false;
  for (int d = 0; d < shape.rank(); ++d) {
    bool closed = is_of_indices(d) && shape[d] % mesh.size() != 0;
    dimensions.push_back(closed ? DimensionSpec(none) : DimensionSpec(unconstrained));
    closes = closes || closed;
  }
  if (!closes) return std::nullopt;
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

}  // namespace meshard
