#include "meshard/runtime/internal/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/named_mesh.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/mesh/device_type.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/manual_values.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

constexpr int kAnywhere = -1;

// The sets of devices of a program, each represented by the first mesh that has these devices.
class DeviceSets {
 public:
  int number_of(const Mesh& mesh) {
    for (std::size_t i = 0; i < meshes_.size(); ++i)
      if (meshes_[i].is_same_object(mesh) || meshes_[i].same_devices(mesh))
        return static_cast<int>(i);
    meshes_.push_back(mesh);
    return static_cast<int>(meshes_.size()) - 1;
  }
  const Mesh& mesh(int set) const { return meshes_[static_cast<std::size_t>(set)]; }
  int size() const { return static_cast<int>(meshes_.size()); }
  bool contains(int set, int part) const {
    const Mesh &whole = mesh(set), &inner = mesh(part);
    if (inner.size() > whole.size() || !same_platform(inner, whole)) return false;
    for (std::int64_t id : inner.device_ids())
      if (!whole.position(id)) return false;
    return true;
  }

 private:
  std::vector<Mesh> meshes_;
};

// The set of devices that a value is on, or will be computed on.
struct Home {
  int set = kAnywhere;
  // Whether it is placed, or computed from a placed value.
  bool placed = false;
  // The mesh that determined the set, for messages.
  const Mesh* mesh = nullptr;
  SourceLocation where = {};
  // The set it is computed on if no user determines one.
  int otherwise = kAnywhere;
};

bool may_be_replicated(const Value& value) {
  const Sharding* sharding = leaf_sharding(value);
  // For a value that is not computed yet, this is decided when it is.
  if (!sharding) return !value.storage() && &value->op() != &parameter_op;
  return sharding->is_fully_replicated() && sharding->unreduced_axes().empty();
}

// Finds the common set of devices of several values.
class Meeting {
 public:
  Meeting(DeviceSets& sets, std::string_view op, SourceLocation where)
      : sets_(sets), op_(op), where_(where) {}

  void name(const Home& home) {
    named_ = true;
    add(home, nullptr);
  }
  void add_operand(const Home& home, const Value& value) {
    if (follower_.otherwise == kAnywhere) follower_.otherwise = home.otherwise;
    if (home.set == kAnywhere) return;
    if (!home.placed) {
      if (follower_.set == kAnywhere) follower_.set = home.set;
    } else if (value.type().rank() == 0) {
      if (scalar_.set == kAnywhere) scalar_ = home;
    } else {
      add(home, &value);
    }
  }
  Home result() const {
    if (taken_.set != kAnywhere) return taken_;
    return scalar_.set != kAnywhere ? scalar_ : follower_;
  }

 private:
  void add(const Home& home, const Value* value) {
    if (taken_.set == kAnywhere) {
      taken_ = home;
      taken_value_ = value;
      return;
    }
    if (taken_.set == home.set) return;
    bool taken_fits = taken_value_ && may_be_replicated(*taken_value_);
    if (value && may_be_replicated(*value) && sets_.contains(home.set, taken_.set)) return;
    if (!taken_fits || named_ || !sets_.contains(taken_.set, home.set))
      throw two_device_sets(op_, *taken_.mesh, taken_.where, *home.mesh, home.where, where_);
    taken_ = home;
    taken_value_ = value;
  }

  DeviceSets& sets_;
  std::string_view op_;
  SourceLocation where_;
  bool named_ = false;
  Home taken_, scalar_, follower_;
  const Value* taken_value_ = nullptr;
};

Home home_of_leaf(const Value& leaf, DeviceSets& sets) {
  const Sharding* sharding = leaf_sharding(leaf);
  if (!sharding) return {};
  return {sets.number_of(sharding->mesh()), !is_unplaced(leaf), &sharding->mesh(), leaf->where()};
}

class Split {
 public:
  explicit Split(const Graph& graph)
      : graph_(graph), homes_(graph.num_leaves() + graph.nodes().size()), levels_(homes_.size()) {}

  std::vector<Stage> run() {
    for (std::size_t i = 0; i < graph_.captured().size(); ++i) {
      const Value& leaf = graph_.captured()[i];
      homes_[graph_.number(leaf.node()) + leaf.index()] = home_of_leaf(leaf, sets_);
    }
    for (const Node* node : graph_.nodes()) home(*node) = home_of(*node);
    if (sets_.size() > 0) settle_the_others();
    for (const Node* node : graph_.nodes()) level(*node) = level_of(*node);
    if (sets_.size() > 1) keep_regions_whole();
    return stages();
  }

 private:
  Home& home(const Node& node) { return homes_[graph_.number(&node)]; }
  int& level(const Node& node) { return levels_[graph_.number(&node)]; }
  bool is_leaf(const Node& node) const { return graph_.number(&node) < graph_.num_leaves(); }
  const Home& home_of_operand(const Value& operand) const {
    std::uint32_t number = graph_.number(operand.node());
    return homes_[number < graph_.num_leaves() ? number + operand.index() : number];
  }

  Home home_of(const Node& node) {
    Meeting meeting(sets_, node.op().name, node.where());
    if (const Mesh* mesh = named_mesh(node))
      meeting.name({sets_.number_of(*mesh), true, mesh, node.where()});
    for (const Value& operand : node.operands())
      meeting.add_operand(home_of_operand(operand), operand);
    Home home = meeting.result();
    if (node.is_unplaced()) home.placed = false;
    // A scalar moves to where it is used, and is broadcast there.
    bool is_number_spread = node.op().traits.repeats_elements && home.placed &&
                            node.operands()[0].type().rank() == 0 && !named_mesh(node);
    if (!is_number_spread) return home;
    Home spread;
    spread.otherwise = home.set;
    return spread;
  }

  // A node without a set of devices gets that of its first user, or else the first set.
  void settle_the_others() {
    for (std::size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = *graph_.nodes()[i];
      if (home(node).set == kAnywhere) home(node).set = std::max(0, home(node).otherwise);
      for (const Value& operand : node.operands())
        if (!is_leaf(*operand.node()) && (home(*operand.node()).set == kAnywhere ||
                                          is_settled_by_use_.contains(operand.node()))) {
          home(*operand.node()).set = home(node).set;
          is_settled_by_use_.insert(operand.node());
        }
    }
  }

  int level_of(const Node& node) {
    int result = 0;
    for (const Value& operand : node.operands()) {
      if (is_leaf(*operand.node())) continue;
      bool same = home(*operand.node()).set == home(node).set;
      result = std::max(result, level(*operand.node()) + (same ? 0 : 1));
    }
    return result;
  }

  // A program cannot return a local value, and what enters a region without being cut must be
  // computed there. So both are computed at the level of their users, even if they need nothing of
  // other devices, as the position on an axis and a constant do not.
  void keep_regions_whole() {
    bool raised = true;
    for (std::size_t round = 0; raised && round < graph_.nodes().size(); ++round) {
      raised = false;
      for (std::size_t i = graph_.nodes().size(); i-- > 0;) {
        const Node& node = *graph_.nodes()[i];
        const bool is_inside = place_of(node) && &node.op() != &full_to_shard_op;
        for (const Value& operand : node.operands()) {
          if (is_leaf(*operand.node()) || !(is_inside || manual_axes(operand)) ||
              level(*operand.node()) >= level(node))
            continue;
          level(*operand.node()) = level(node);
          raised = true;
        }
      }
      for (const Node* node : graph_.nodes())
        if (raised) level(*node) = std::max(level(*node), level_of(*node));
    }
  }

  std::vector<Stage> stages() {
    std::map<std::pair<int, int>, Stage> by_level;  // and set
    std::set<std::pair<const Node*, std::uint32_t>> kept;
    auto stage_of = [&](const Node& node) { return std::pair(level(node), home(node).set); };
    auto keep = [&](const Value& value) {
      if (!kept.insert({value.node(), value.index()}).second) return;
      Stage& stage = by_level[stage_of(*value.node())];
      stage.results.push_back(value);
      stage.unplaced.push_back(!home(*value.node()).placed);
    };
    for (const Value& result : graph_.results())
      if (!is_leaf(*result.node())) keep(result);
    for (const Node* node : graph_.nodes())
      for (const Value& operand : node->operands())
        if (!is_leaf(*operand.node()) && stage_of(*operand.node()) != stage_of(*node))
          for (std::uint32_t i = 0; i < operand->num_outputs(); ++i) keep(Value(operand.node(), i));
    std::vector<Stage> stages;
    for (auto& [place, stage] : by_level) {
      if (place.second != kAnywhere) stage.mesh = sets_.mesh(place.second);
      stages.push_back(std::move(stage));
    }
    return stages;
  }

  const Graph& graph_;
  DeviceSets sets_;
  std::vector<Home> homes_;
  std::vector<int> levels_;
  std::set<const Node*> is_settled_by_use_;
};

bool is_elsewhere(const Value& leaf, const Mesh& mesh) {
  const Sharding* sharding = leaf_sharding(leaf);
  return sharding && !sharding->mesh().is_same_object(mesh) && !sharding->mesh().same_devices(mesh);
}

// True if each device needs the whole value. Such a value can move to the devices of a submesh, and
// a rank-0 value to any devices.
bool goes_whole(const Value& leaf, const Mesh& mesh) {
  return leaf.type().rank() == 0 || is_whole_on(*leaf_sharding(leaf), mesh);
}

// A captured node brings all of its results as leaves. Those that nothing uses stay where they are,
// and decide nothing.
std::vector<Value> used_captures(const Graph& graph) {
  std::set<std::pair<const Node*, std::uint32_t>> used;
  auto use = [&](const Value& value) { used.insert({value.node(), value.index()}); };
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands()) use(operand);
  for (const Value& result : graph.results()) use(result);
  std::vector<Value> captured;
  for (const Value& leaf : graph.captured())
    if (used.contains({leaf.node(), leaf.index()})) captured.push_back(leaf);
  return captured;
}

const Node& first_user(const Graph& graph, const Value& leaf) {
  for (const Node* node : graph.nodes())
    for (const Value& operand : node->operands())
      if (operand == leaf) return *node;
  return *graph.nodes().back();
}

}  // namespace

std::vector<Stage> split_by_devices(const Graph& graph) { return Split(graph).run(); }

std::optional<Mesh> devices_of_program(const Graph& graph, SourceLocation where) {
  DeviceSets sets;
  Meeting meeting(sets, "jit", where);
  for (const Node* node : graph.nodes())
    if (const Mesh* mesh = named_mesh(*node))
      meeting.name({sets.number_of(*mesh), true, mesh, node->where()});
  std::vector<Value> captured = used_captures(graph);
  for (std::span<const Value> leaves : {graph.parameters(), std::span<const Value>(captured)})
    for (const Value& leaf : leaves) meeting.add_operand(home_of_leaf(leaf, sets), leaf);
  Home home = meeting.result();
  return home.set == kAnywhere ? std::nullopt : std::optional(sets.mesh(home.set));
}

Graph on_devices_of(Runtime& runtime, const Graph& graph, const Mesh& mesh, SourceLocation where) {
  auto elsewhere = [&](const Value& leaf) { return is_elsewhere(leaf, mesh); };
  bool all_here = std::none_of(graph.parameters().begin(), graph.parameters().end(), elsewhere) &&
                  std::none_of(graph.captured().begin(), graph.captured().end(), elsewhere);
  if (all_here) return graph;
  auto whole_of = [&](const Value& leaf) {
    return Sharding::replicated(mesh, static_cast<std::size_t>(leaf.type().rank()));
  };
  auto check = [&](const Value& leaf) {
    if (is_unplaced(leaf) || goes_whole(leaf, mesh)) return;
    const Node& user = first_user(graph, leaf);
    throw two_device_sets(user.op().name, leaf_sharding(leaf)->mesh(), leaf->where(), mesh,
                          user.where(), user.where())
        .with_note(cat("a value computed at ", where, " needs it"));
  };
  internal::TraceScope scope;
  // A function may ignore all of its arguments, or have none.
  const Node& first = !graph.nodes().empty()        ? *graph.nodes().front()
                      : !graph.parameters().empty() ? *graph.parameters().front().node()
                                                    : *graph.captured().front().node();
  Replay replay(first.trace());
  std::vector<Value> parameters, results;
  for (const Value& leaf : graph.parameters()) {
    std::optional<Sharding> sharding;
    if (elsewhere(leaf)) {
      check(leaf);
      if (goes_whole(leaf, mesh)) sharding = whole_of(leaf);
    } else if (const Sharding* present = leaf_sharding(leaf)) {
      sharding = *present;
    }
    Tensor parameter = make_parameter(leaf.type(), std::move(sharding), leaf->where());
    if (leaf->is_unplaced()) parameter.value()->set_unplaced();
    replay.set(leaf, parameter);
    parameters.push_back(parameter.value());
  }
  for (const Value& leaf : used_captures(graph)) {
    if (!elsewhere(leaf)) continue;
    check(leaf);
    replay.set(leaf, goes_whole(leaf, mesh) ? copy_with(runtime, leaf, whole_of(leaf), where)
                                            : make_moved(leaf, leaf->where()));
  }
  for (const Tensor& result : replay.run(graph.results())) results.push_back(result.value());
  std::span<const UnrolledLayers> unrolled = graph.unrolled_layers();
  return Graph::build(parameters, results, scope.trace(), {unrolled.begin(), unrolled.end()});
}

}  // namespace meshard
