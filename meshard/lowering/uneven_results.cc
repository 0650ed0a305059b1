#include "meshard/lowering/uneven_results.h"

#include <algorithm>

#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/sharding/propagate.h"

namespace meshard {
namespace {

bool is_uneven(const std::optional<Sharding>& sharding, const TensorType& type) {
  return sharding && type.size() > 0 && !sharding->is_even(type.shape);
}

// Follows shardings through the graph, forward only.
class Following {
 public:
  explicit Following(const Graph& graph) : graph_(graph) {
    known_.resize(graph.num_leaves() + graph.nodes().size());
    for (const Value& leaf : graph.parameters()) add_leaf(leaf);
    for (const Value& leaf : graph.captured()) add_leaf(leaf);
  }

  // Whether it is worth it: nothing uneven follows from even sizes but by a slice or a
  // concatenation, where the compiler's own choice is as good.
  bool any_uneven() const {
    return any_uneven_ ||
           std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                       [](const Node* node) { return is_uneven(mark_of(*node), node->type()); });
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
    any_uneven_ = any_uneven_ || is_uneven(*sharding, leaf.type());
  }

  std::optional<Sharding> of_node(const Node& node) const {
    if (node.annotations()) return std::nullopt;  // local values, and shardings that are said
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
  std::vector<std::optional<Sharding>> known_;  // by number; of a node's first result
  bool any_uneven_ = false;
};

}  // namespace

std::vector<std::optional<Sharding>> uneven_results(const Graph& graph) {
  std::vector<std::optional<Sharding>> results(graph.results().size());
  Following following(graph);
  if (!following.any_uneven()) return results;
  following.run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value& result = graph.results()[i];
    std::optional<Sharding> sharding = following.of(result);
    if (is_uneven(sharding, result.type())) results[i] = std::move(sharding);
  }
  return results;
}

}  // namespace meshard
