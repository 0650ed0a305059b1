#include "meshard/lowering/manual_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "meshard/ops/full_to_shard.h"
#include "meshard/ops/shard_to_full.h"

namespace meshard {
namespace {

template <class T>
const T* attributes_if(const Node& node) {
  bool is = node.attributes() && node.attributes()->type() == typeid(T);
  return is ? &node.attributes_as<T>() : nullptr;
}

class Planner {
 public:
  Planner(const Graph& graph, ProgramOrder& order)
      : graph_(graph), order_(order), level_(graph.num_leaves() + graph.nodes().size(), 0) {}

  void run() {
    for (const Node* node : graph_.nodes()) {
      if (node->annotations() && node->annotations()->manual)
        add_local(*node, *node->annotations()->manual);
      else
        add_full(*node);
    }
    std::map<std::uint32_t, std::vector<ProgramStep>> levels;
    for (std::size_t r = 0; r < order_.regions.size(); ++r)
      levels[region_level_[r]].push_back({nullptr, r});
    for (const Node* node : full_nodes_) levels[level(*node)].push_back({node, 0});
    for (auto& [number, steps] : levels)
      order_.steps.insert(order_.steps.end(), steps.begin(), steps.end());
  }

 private:
  std::uint32_t& level(const Node& node) { return level_[graph_.number(&node)]; }

  void add_full(const Node& node) {
    for (const Value& operand : node.operands())
      level(node) = std::max(level(node), level(*operand.node()));
    const auto* leaving = attributes_if<ShardToFullAttributes>(node);
    if (!leaving) return full_nodes_.push_back(&node);
    const Value& local = node.operands()[0];
    region_of(local).outputs.push_back({local, value_of(node), *leaving->sharding});
  }

  void add_local(const Node& node, const ManualAxes& place) {
    for (const Value& operand : node.operands())
      level(node) = std::max(level(node),
                             level(*operand.node()) + (manual_axes(operand) == nullptr ? 1u : 0u));
    ManualRegion& region = region_at(level(node), place);
    region_by_node_[&node] = static_cast<std::size_t>(&region - order_.regions.data());
    if (const auto* entering = attributes_if<FullToShardAttributes>(node)) {
      region.inputs.push_back({value_of(node), node.operands()[0], *entering->sharding});
      return;
    }
    region.nodes.push_back(&node);
    for (const Value& operand : node.operands()) bring_in(region, operand);
  }

  // Makes an operand known inside the region.
  void bring_in(ManualRegion& region, const Value& operand) {
    const ManualAxes* place = manual_axes(operand);
    if (place && &region_of(operand) == &region) return;
    auto number = static_cast<std::size_t>(&region - order_.regions.data());
    if (!brought_in_.emplace(operand.node(), operand.index(), number).second) return;
    if (!place) {  // a free value
      region.inputs.push_back(
          {operand, operand,
           Sharding::replicated(region.mesh, static_cast<std::size_t>(operand.type().rank()))});
      return;
    }
    Sharding sharding = carried_sharding(*place, operand.type());
    if (carried_.emplace(operand.node(), operand.index()).second)
      region_of(operand).outputs.push_back({operand, Value(), sharding});
    region.inputs.push_back({operand, Value(), std::move(sharding)});
  }

  ManualRegion& region_of(const Value& local) {
    return order_.regions[region_by_node_.at(local.node())];
  }

  ManualRegion& region_at(std::uint32_t at, const ManualAxes& place) {
    for (std::size_t r = order_.regions.size(); r-- > 0;) {
      ManualRegion& region = order_.regions[r];
      if (region_level_[r] == at && place.same_place({region.mesh, region.axes, {}})) return region;
    }
    region_level_.push_back(at);
    return order_.regions.emplace_back(ManualRegion{.mesh = place.mesh, .axes = place.axes});
  }

  // The only result of a node of the graph.
  static Value value_of(const Node& node) { return Value(const_cast<Node*>(&node)); }

  const Graph& graph_;
  ProgramOrder& order_;
  std::vector<std::uint32_t> level_;         // by node number
  std::vector<std::uint32_t> region_level_;  // by region
  std::map<const Node*, std::size_t> region_by_node_;
  std::set<std::tuple<const Node*, std::uint32_t, std::size_t>> brought_in_;  // and the region
  std::set<std::pair<const Node*, std::uint32_t>> carried_;
  std::vector<const Node*> full_nodes_;
};

}  // namespace

ProgramOrder::ProgramOrder(const Graph& graph) {
  bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    return node->annotations() && node->annotations()->manual;
  });
  if (any)
    Planner(graph, *this).run();
  else
    for (const Node* node : graph.nodes()) steps.push_back({node, 0});
}

}  // namespace meshard
