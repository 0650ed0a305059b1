#include "meshard/autodiff/cheapest_residuals.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "meshard/autodiff/minimum_cut.h"
#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

using Cost = MinimumCut::Capacity;

// Costs are in eighths of a byte.
Cost cost_of_keeping(const Value& value) { return 8 * value.type().bytes(); }

// nullopt if the node is not computed again.
std::optional<Cost> cost_of_computing(const Node& node) {
  Cost elements = 0;
  for (std::uint32_t i = 0; i < node.num_outputs(); ++i) elements += node.type(i).size();
  switch (node.op().traits.recomputation) {
    case Recomputation::kNever: return std::nullopt;
    case Recomputation::kFree: return 0;
    case Recomputation::kArithmetic: return elements;
    case Recomputation::kFunction: return 8 * elements;
    case Recomputation::kSeries: return 128 * elements;
  }
  return std::nullopt;
}

// The choice as a minimum cut. A vertex of a value is on the source's side if the value is needed;
// that of a node, if the node is computed again. The arc from a value to its node is cut if the
// value is kept; that from a node to the sink, if the node is computed again.
class ResidualChoice {
 public:
  ResidualChoice(const ValueSet& needed, const std::function<bool(const Value&)>& is_available)
      : is_available_(is_available) {
    for (const Value& value : needed) add_need(source_, value);
    while (!waiting_.empty()) {
      Value value = std::move(waiting_.back());
      waiting_.pop_back();
      cut_.add_arc(values_.at(value), computed(*value.node()), cost_of_keeping(value));
    }
  }

  ValueSet kept() {
    std::vector<bool> needed = cut_.source_side(source_, sink_);
    ValueSet kept;
    for (const auto& [value, vertex] : values_)
      if (needed[vertex] && !needed[nodes_.at(value.node())]) kept.insert(value);
    return kept;
  }

 private:
  // The value is needed if `vertex` is on the source's side.
  void add_need(std::size_t vertex, const Value& value) {
    if (is_available_(value)) return;
    auto found = values_.find(value);
    if (found == values_.end()) {
      found = values_.emplace(value, cut_.add_vertex()).first;
      waiting_.push_back(value);
    }
    cut_.add_arc(vertex, found->second, MinimumCut::kUnbounded);
  }

  std::size_t computed(const Node& node) {
    auto [found, is_new] = nodes_.try_emplace(&node, sink_);
    std::optional<Cost> cost = cost_of_computing(node);
    if (!is_new || !cost) return found->second;
    found->second = cut_.add_vertex();
    cut_.add_arc(found->second, sink_, *cost);
    for (const Value& operand : node.operands()) add_need(found->second, operand);
    return found->second;
  }

  const std::function<bool(const Value&)>& is_available_;
  MinimumCut cut_;
  std::size_t source_ = cut_.add_vertex(), sink_ = cut_.add_vertex();
  std::map<Value, std::size_t, ValueOrder> values_;
  std::unordered_map<const Node*, std::size_t> nodes_;
  std::vector<Value> waiting_;
};

}  // namespace

ValueSet cheapest_residuals(const ValueSet& needed,
                            const std::function<bool(const Value&)>& is_available) {
  return ResidualChoice(needed, is_available).kept();
}

}  // namespace meshard
