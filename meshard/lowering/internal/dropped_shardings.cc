#include "meshard/lowering/internal/dropped_shardings.h"

#include <algorithm>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/internal/partial_sums.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

// Propagates shardings through the graph, forward only.
class Following {
 public:
  Following(const Graph& graph, const ProgramMeshes& meshes) : graph_(graph), meshes_(meshes) {
    known_.resize(graph.num_leaves() + graph.nodes().size());
    for (const Value& leaf : graph.parameters()) add_leaf(leaf);
    for (const Value& leaf : graph.captured()) add_leaf(leaf);
  }

  // True if propagation can find anything: sub-axes only follow from sub-axes. Uneven sizes only
  // follow from even ones through slices and concatenations, where the compiler's own choice is as
  // good.
  bool any_dropped() const {
    return any_dropped_ ||
           std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                       [&](const Node* node) { return is_dropped(mark_of(*node), node->type()); });
  }

  // Whether the compiler drops this sharding of a value that leaves the program.
  bool is_dropped(const std::optional<Sharding>& sharding, const TensorType& type) const {
    return sharding && type.size() > 0 &&
           (!sharding->is_even(type.shape) || meshes_.has_sub_axis(*sharding));
  }

  void run() {
    for (const Node* node : graph_.nodes())
      if (node->num_outputs() == 1) known_[graph_.number(node)] = of_node(*node);
  }

  std::optional<Sharding> of(const Value& value) const {
    return value.index() == 0 ? known_[graph_.number(value.node())] : std::nullopt;
  }

 private:
  static std::optional<Sharding> mark_of(const Node& node) {
    return marked_sharding(Value(const_cast<Node*>(&node)));
  }

  void add_leaf(const Value& leaf) {
    const Sharding* sharding = leaf_sharding(leaf);
    if (!sharding) return;
    known_[graph_.number(leaf.node()) + leaf.index()] = *sharding;
    any_dropped_ = any_dropped_ || is_dropped(*sharding, leaf.type());
  }

  std::optional<Sharding> of_node(const Node& node) const {
    if (node.annotations()) return std::nullopt;  // local values, and explicit shardings
    if (std::optional<Sharding> mark = mark_of(node)) return mark;
    if (!node.op().sharding_rule) return std::nullopt;
    const Mesh* mesh = nullptr;
    for (const Value& operand : node.operands())
      if (const auto& sharding = known_[graph_.number(operand.node())]) mesh = &sharding->mesh();
    if (!mesh) return std::nullopt;
    std::vector<Sharding> operands;
    for (const Value& operand : node.operands()) {
      auto rank = static_cast<std::size_t>(operand.type().rank());
      std::optional<Sharding> sharding = of(operand);
      if (sharding && sharding->mesh() != *mesh) return std::nullopt;
      operands.push_back(sharding ? sharding->with_rank(rank) : Sharding::replicated(*mesh, rank));
    }
    Propagation followed = propagate(node.op().sharding_rule(call_of(node)), operands);
    if (!followed.ok() || followed.results.size() != 1) return std::nullopt;
    return followed.results[0];
  }

  const Graph& graph_;
  const ProgramMeshes& meshes_;
  std::vector<std::optional<Sharding>> known_;  // by number; for a node's first result
  bool any_dropped_ = false;
};

}  // namespace

std::vector<std::optional<Sharding>> dropped_shardings(const Graph& graph,
                                                       const ProgramMeshes& meshes) {
  std::vector<std::optional<Sharding>> results(graph.results().size());
  Following following(graph, meshes);
  if (!following.any_dropped()) return results;
  following.run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value& result = graph.results()[i];
    std::optional<Sharding> sharding = following.of(result);
    if (following.is_dropped(sharding, result.type()) && meshes.can_express(*sharding))
      results[i] = std::move(sharding);
  }
  return results;
}

Sharding closed_at_boundary(const Sharding& sharding, const ProgramMeshes& meshes) {
  std::vector<DimensionSpec> dimensions = sharding.spec().dimensions();
  bool changed = false;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    if (!dimensions[d].is_open()) continue;
    if (!has_summands(sharding) && !meshes.is_split_by_sub_axis(sharding, d)) continue;
    dimensions[d] = DimensionSpec(dimensions[d].axes());
    changed = true;
  }
  if (!changed) return sharding;
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)))
      .with_replicated(sharding.replicated_axes())
      .with_unreduced_of(sharding);
}

}  // namespace meshard
