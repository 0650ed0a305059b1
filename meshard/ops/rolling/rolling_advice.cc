#include "meshard/ops/rolling/rolling_advice.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/rolling/layer_region.h"

namespace meshard {
namespace {

constexpr std::size_t kLeastLayers = 3;
// The number of consecutive nodes hashed to find the period. Shorter windows match by chance.
constexpr std::size_t kWindow = 4;

// Covers the nodes from `first` to first + groups * period - 1.
struct Run {
  std::size_t first = 0, period = 0, groups = 0;
  std::size_t saved() const { return (groups - 1) * period; }
};

// The nodes of a program without the parts of leaves: slices and reshapes of leaves count as
// leaves, because layers with stacked parameters use slices of them, and grad records a reshape of
// each argument.
class Rows {
 public:
  explicit Rows(const Graph& graph) : region_(without_parts(graph)) {
    std::string key;
    for (std::size_t at = 0; at < region_.size(); ++at) {
      const Node& node = region_.node(at);
      key.assign(node.op().name);
      if (!puts_part_back(node)) key += region_.key(at);
      for (std::uint32_t i = 0; i < node.num_outputs(); ++i)
        attribute_text::append_key(key, node.type(i));
      hashes_.push_back(std::hash<std::string>()(key));
    }
  }

  const Node& node(std::size_t position) const { return region_.node(position); }
  // Counts the slices and reshapes of leaves that a run uses; one stacked array replaces them.
  std::size_t num_parts(const Run& run) const {
    NodeSet taken;
    std::size_t count = 0;
    for (std::size_t i = run.first; i < run.first + run.groups * run.period; ++i)
      for (const Value& operand : region_.node(i).operands())
        for (const Node* part = operand.node(); parts_.contains(*part);
             part = part->operands()[0].node())
          if (taken.insert(*part)) ++count;
    return count;
  }

  // Runs of equal groups that do not overlap, the largest first.
  std::vector<Run> runs() const {
    std::vector<Run> found;
    for (std::size_t period : periods()) add_runs(period, found);
    std::stable_sort(found.begin(), found.end(),
                     [](const Run& a, const Run& b) { return a.saved() > b.saved(); });
    std::vector<Run> apart;
    for (const Run& run : found) {
      auto overlaps = [&](const Run& other) {
        return run.first < other.first + other.groups * other.period &&
               other.first < run.first + run.groups * run.period;
      };
      if (std::none_of(apart.begin(), apart.end(), overlaps)) apart.push_back(run);
    }
    return apart;
  }

  // The number of tensors that each group has of its own. Empty if the groups are not connected
  // alike, or no group uses results of the previous one.
  std::optional<std::size_t> own_tensors(const Run& run) const {
    bool chained = false;
    std::set<std::pair<const Node*, std::uint32_t>> own;
    for (std::size_t i = run.first; i < run.first + run.saved(); ++i) {
      std::span<const Value> a = region_.node(i).operands(),
                             b = region_.node(i + run.period).operands();
      if (a.size() != b.size()) return std::nullopt;
      for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k] == b[k]) continue;
        if (a[k].type() != b[k].type() || a[k].index() != b[k].index()) return std::nullopt;
        std::optional<std::size_t> from = region_.position(a[k]);
        std::optional<std::size_t> to = region_.position(b[k]);
        if (!from && !to) {
          if (i < run.first + run.period) own.emplace(a[k].node(), a[k].index());
          continue;
        }
        bool inside = to && *to >= run.first;
        // The first group uses values from before the loop.
        bool enters = i < run.first + run.period && inside;
        if (!enters && !(from && to && *to == *from + run.period)) return std::nullopt;
        // The operand was made in the previous group.
        std::size_t user = i + run.period - run.first;
        if (inside && user / run.period > (*to - run.first) / run.period) chained = true;
      }
    }
    if (!chained || own.empty()) return std::nullopt;
    return own.size();
  }

 private:
  std::vector<const Node*> without_parts(const Graph& graph) {
    std::vector<const Node*> rest;
    for (const Node* node : graph.nodes()) {
      const OpDef* op = &node->op();
      bool takes_part = op == &slice_op || op == &reshape_op || op == &layer_slice_op;
      const Value* from = takes_part ? &node->operands()[0] : nullptr;
      if (!from ||
          (graph.number(from->node()) >= graph.num_leaves() && !parts_.contains(*from->node()))) {
        rest.push_back(node);
        continue;
      }
      if (node->type(0).bytes() < from->type().bytes()) stacked_.push_back(from->type());
      parts_.insert(*node);
    }
    return rest;
  }
  // True for the cotangent of a slice of stacked parameters. It is padded at the slice's position,
  // so its attributes differ between layers that are otherwise equal.
  bool puts_part_back(const Node& node) const {
    return &node.op() == &pad_op &&
           std::find(stacked_.begin(), stacked_.end(), node.type(0)) != stacked_.end();
  }

  // Distances between equal windows that occur often enough to be the period of a run.
  std::vector<std::size_t> periods() const {
    std::unordered_map<std::size_t, std::size_t> last;
    std::map<std::size_t, std::size_t> votes;
    for (std::size_t i = 0; i + kWindow <= hashes_.size(); ++i) {
      std::size_t window = 0;
      for (std::size_t k = 0; k < kWindow; ++k) window = hash_combine(window, hashes_[i + k]) + 1;
      auto [entry, is_new] = last.try_emplace(window, i);
      if (!is_new) ++votes[i - std::exchange(entry->second, i)];
    }
    std::vector<std::size_t> chosen;
    for (const auto& [distance, count] : votes)
      if (count * 2 >= distance) chosen.push_back(distance);
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::size_t a, std::size_t b) { return votes[a] > votes[b]; });
    // Repetition within a layer votes for short distances; the period of the layers is among the
    // most frequent ones.
    if (chosen.size() > 8) chosen.resize(8);
    return chosen;
  }

  void add_runs(std::size_t period, std::vector<Run>& found) const {
    std::size_t length = 0;
    for (std::size_t i = 0; i + period <= hashes_.size(); ++i) {
      bool equal = i + period < hashes_.size() && hashes_[i] == hashes_[i + period];
      if (equal) {
        ++length;
        continue;
      }
      std::size_t groups = length / period + 1;
      if (groups >= kLeastLayers) found.push_back({i - length, period, groups});
      length = 0;
    }
  }

  NodeSet parts_;
  std::vector<TensorType> stacked_;  // the types that the parts are slices of
  internal::LayerRegion region_;
  std::vector<std::size_t> hashes_;
};

}  // namespace

std::string RollingAdvice::to_string() const {
  return cat(where, ": ", layers, " equal layers in a row, ", nodes_per_layer,
             " nodes each; an nn::Layers or repeat() records one: ", nodes_before, " nodes become ",
             nodes_after);
}

std::optional<RollingAdvice> rolling_advice(const Graph& graph) {
  if (graph.nodes().size() < kLeastLayers * kWindow) return std::nullopt;
  Rows rows(graph);
  std::vector<Run> runs = rows.runs();
  const Run* forward = nullptr;
  std::size_t own = 0;
  for (const Run& run : runs) {
    std::optional<std::size_t> tensors = rows.own_tensors(run);
    // The forward pass comes before the backward pass, which has a run of its own.
    if (!tensors || (forward && forward->first < run.first)) continue;
    if (forward && run.saved() * 4 < forward->saved()) continue;
    forward = &run;
    own = *tensors;
  }
  if (!forward) return std::nullopt;
  std::size_t saved = rows.num_parts(*forward);
  for (const Run& run : runs)
    if (run.groups + 1 >= forward->groups && run.groups <= forward->groups + 1)
      saved += run.saved();
  const Node& first = rows.node(forward->first);
  return RollingAdvice{.layers = forward->groups,
                       .nodes_per_layer = forward->period,
                       .parameters_per_layer = own,
                       .nodes_before = graph.nodes().size(),
                       .nodes_after = graph.nodes().size() - saved,
                       .where = first.where()};
}

}  // namespace meshard
