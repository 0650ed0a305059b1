#include "meshard/autodiff/cheapest_residuals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

constexpr std::size_t kNotReached = static_cast<std::size_t>(-1);

}  // namespace

std::size_t MinimumCut::add_vertex() {
  from_.emplace_back();
  return from_.size() - 1;
}

void MinimumCut::add_arc(std::size_t from, std::size_t to, Capacity capacity) {
  from_[from].push_back(arcs_.size());
  arcs_.push_back({to, capacity});
  from_[to].push_back(arcs_.size());
  arcs_.push_back({from, 0});
}

// The number of arcs with capacity left from each vertex to the sink. Returns false if the source
// does not reach it.
bool MinimumCut::find_levels(std::size_t source, std::size_t sink) {
  level_.assign(from_.size(), kNotReached);
  level_[sink] = 0;
  std::vector<std::size_t> queue{sink};
  for (std::size_t at = 0; at < queue.size(); ++at)
    for (std::size_t arc : from_[queue[at]]) {
      std::size_t before = arcs_[arc].to;
      if (level_[before] != kNotReached || arcs_[arc ^ 1].left == 0) continue;
      level_[before] = level_[queue[at]] + 1;
      queue.push_back(before);
    }
  return level_[source] != kNotReached;
}

// Sends flow along one shortest path. Returns false if there is none.
bool MinimumCut::augment(std::size_t source, std::size_t sink) {
  std::vector<std::size_t> path;
  std::size_t at = source;
  while (at != sink) {
    std::size_t& next = next_[at];
    while (next < from_[at].size()) {
      const Arc& arc = arcs_[from_[at][next]];
      if (arc.left > 0 && level_[arc.to] != kNotReached && level_[arc.to] + 1 == level_[at]) break;
      ++next;
    }
    if (next < from_[at].size()) {
      path.push_back(from_[at][next]);
      at = arcs_[path.back()].to;
    } else if (path.empty()) {
      return false;
    } else {
      // A dead end.
      at = arcs_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
    }
  }
  Capacity flow = kUnbounded;
  for (std::size_t arc : path) flow = std::min(flow, arcs_[arc].left);
  for (std::size_t arc : path) {
    arcs_[arc].left -= flow;
    arcs_[arc ^ 1].left += flow;
  }
  return true;
}

// Dinic's algorithm.
std::vector<bool> MinimumCut::source_side(std::size_t source, std::size_t sink) {
  while (find_levels(source, sink)) {
    next_.assign(from_.size(), 0);
    while (augment(source, sink)) {
    }
  }
  // What reaches the sink with the capacities left is on its side in every minimum cut.
  std::vector<bool> side;
  for (std::size_t level : level_) side.push_back(level == kNotReached);
  return side;
}

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
