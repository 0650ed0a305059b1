#include "meshard/lowering/internal/manual_regions.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "meshard/graph/attributes.h"
#include "meshard/lowering/internal/partitioner_needs.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/manual_values.h"

namespace meshard {
namespace {

// The type with which `value` exists inside a region `depth` deep: its own type for a value of that
// region; for a value of a region further inside, the type of what leaves that region.
TensorType carrier_type(const Value& value, std::size_t depth) {
  TensorType type = value.type();
  const ManualAxes& place = *manual_axes(value);
  for (std::size_t d = place.depth(); d > depth; --d) {
    Sharding sharding = carried_sharding(place.at_depth(d), type);
    Dimensions sizes = type.shape.sizes();
    if (sizes.size() < sharding.rank()) sizes.push_back(1);
    for (std::size_t k = 0; k < sizes.size(); ++k) sizes[k] *= sharding.num_tiles(k);
    type.shape = Shape(std::move(sizes));
  }
  return type;
}

class Planner {
 public:
  Planner(const Graph& graph, std::vector<ManualRegion>& regions)
      : graph_(graph), regions_(regions), state_(graph.num_leaves() + graph.nodes().size()) {}

  // Plans the steps of nodes in `depth` or more regions. The values `leaving` belong to inner
  // regions, and this stage must carry them out of these.
  std::vector<ProgramStep> plan(std::span<const Node* const> nodes, std::size_t depth,
                                std::span<const Value> leaving) {
    Stage stage{depth, ++stages_, {}, {}, {}, {}};
    for (const Node* node : nodes) state(*node) = {stage.number, 0, 0};
    for (const Node* node : nodes)
      if (manual_depth(*node) > depth)
        add_local(stage, *node);
      else
        add_full(stage, *node);
    for (const Value& value : leaving) carry_out(stage, value);
    for (const auto& [region, level] : stage.level_of_region) plan_inside(region, depth + 1);
    return steps_of(stage);
  }

 private:
  // The state of one call of plan().
  struct Stage {
    std::size_t depth;
    std::uint32_t number;
    std::vector<std::pair<std::size_t, std::uint32_t>> level_of_region;
    std::vector<const Node*> full_nodes;
    std::set<std::tuple<const Node*, std::uint32_t, std::size_t>> brought_in;  // and the region
    std::set<std::pair<const Node*, std::uint32_t>> carried;
  };
  struct NodeState {
    std::uint32_t stage = 0, level = 0;
    std::size_t region = 0;
  };
  NodeState& state(const Node& node) { return state_[graph_.number(&node)]; }
  // Otherwise the value exists before the stage begins.
  bool is_of(const Stage& stage, const Value& value) {
    return state(*value.node()).stage == stage.number;
  }
  std::uint32_t level(const Stage& stage, const Value& value) {
    return is_of(stage, value) ? state(*value.node()).level : 0;
  }

  void add_full(Stage& stage, const Node& node) {
    for (const Value& operand : node.operands())
      state(node).level = std::max(state(node).level, level(stage, operand));
    const auto* leaving = attributes_if<ShardToFullAttributes>(node);
    if (!leaving) return stage.full_nodes.push_back(&node);
    const Value& local = node.operands()[0];
    regions_[state(*local.node()).region].outputs.push_back(
        {local, value_of(node), *leaving->sharding, local.type()});
  }

  void add_local(Stage& stage, const Node& node) {
    NodeState& own = state(node);
    for (const Value& operand : node.operands())
      own.level = std::max(
          own.level, level(stage, operand) + (manual_depth(operand) <= stage.depth ? 1u : 0u));
    const ManualAxes& place = *node.annotations()->manual;
    own.region = region_at(stage, own.level, place.at_depth(stage.depth + 1));
    if (const auto* entering = attributes_if<FullToShardAttributes>(node);
        entering && place.depth() == stage.depth + 1) {
      regions_[own.region].inputs.push_back(
          {value_of(node), node.operands()[0], *entering->sharding, node.type()});
      return;
    }
    regions_[own.region].nodes.push_back(&node);
    for (const Value& operand : node.operands()) bring_in(stage, own.region, operand);
  }

  // Makes an operand available inside the region.
  void bring_in(Stage& stage, std::size_t region, const Value& operand) {
    bool is_local = manual_depth(operand) > stage.depth;
    if (is_local && is_of(stage, operand) && state(*operand.node()).region == region) return;
    if (!stage.brought_in.emplace(operand.node(), operand.index(), region).second) return;
    std::vector<RegionCrossing>& inputs = regions_[region].inputs;
    if (!is_local) {
      auto rank = static_cast<std::size_t>(operand.type().rank());
      Sharding whole = Sharding::replicated(regions_[region].place.mesh, rank);
      inputs.push_back({operand, operand, std::move(whole), operand.type()});
      return;
    }
    if (is_of(stage, operand)) carry_out(stage, operand);
    inputs.push_back(carrying(stage, operand));
  }

  // Makes a local value available outside of its region.
  void carry_out(Stage& stage, const Value& local) {
    if (stage.carried.emplace(local.node(), local.index()).second)
      regions_[state(*local.node()).region].outputs.push_back(carrying(stage, local));
  }

  static RegionCrossing carrying(const Stage& stage, const Value& local) {
    TensorType type = carrier_type(local, stage.depth + 1);
    Sharding sharding = carried_sharding(manual_axes(local)->at_depth(stage.depth + 1), type);
    return {local, Value(), std::move(sharding), std::move(type)};
  }

  std::size_t region_at(Stage& stage, std::uint32_t at, const ManualAxes& place) {
    for (std::size_t i = stage.level_of_region.size(); i-- > 0;) {
      const auto& [region, level] = stage.level_of_region[i];
      if (level == at && place.same_place(regions_[region].place)) return region;
    }
    regions_.push_back({place.with_varying({})});
    stage.level_of_region.emplace_back(regions_.size() - 1, at);
    return regions_.size() - 1;
  }

  void plan_inside(std::size_t region, std::size_t depth) {
    std::vector<const Node*> nodes = regions_[region].nodes;  // a copy: regions_ grows
    std::vector<Value> leaving;
    for (const RegionCrossing& output : regions_[region].outputs)
      if (manual_depth(output.local) > depth) leaving.push_back(output.local);
    std::vector<ProgramStep> steps = plan(nodes, depth, leaving);
    regions_[region].steps = std::move(steps);
  }

  std::vector<ProgramStep> steps_of(const Stage& stage) {
    std::map<std::uint32_t, std::vector<ProgramStep>> levels;
    for (const auto& [region, level] : stage.level_of_region)
      levels[level].push_back({nullptr, region});
    for (const Node* node : stage.full_nodes) levels[state(*node).level].push_back({node, 0});
    std::vector<ProgramStep> all;
    for (auto& [number, steps] : levels) all.insert(all.end(), steps.begin(), steps.end());
    return all;
  }

  // The only result of a node of the graph.
  static Value value_of(const Node& node) { return Value(const_cast<Node*>(&node)); }

  const Graph& graph_;
  std::vector<ManualRegion>& regions_;
  std::vector<NodeState> state_;  // by node number; of the last stage that contained the node
  std::uint32_t stages_ = 0;
};

}  // namespace

ProgramOrder::ProgramOrder(const Graph& graph, std::size_t depth) {
  bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                         [&](const Node* node) { return manual_depth(*node) > depth; });
  if (any)
    steps = Planner(graph, regions).plan(graph.nodes(), depth, {});
  else
    for (const Node* node : graph.nodes()) steps.push_back({node, 0});
}

}  // namespace meshard
