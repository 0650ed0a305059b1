// Tested in meshard/ops/rolling/roll_layers_test.cc.
#include "meshard/ops/rolling/layer_region.h"

#include <algorithm>
#include <map>

#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/slicing.h"

namespace meshard::internal {
namespace {

constexpr std::int64_t kFewestLayers = 3;

bool same_types(const Node& a, const Node& b) {
  if (a.num_outputs() != b.num_outputs()) return false;
  for (std::uint32_t i = 0; i < a.num_outputs(); ++i)
    if (a.type(i) != b.type(i)) return false;
  return true;
}

// An argument, or a value that exists already; constants are computed.
bool is_leaf(const Node& node) { return node.op().operands.empty() && !node.op().emit; }

}  // namespace

LayerRegion::LayerRegion(std::vector<const Node*> nodes)
    : nodes_(std::move(nodes)), keys_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) *positions_.try_emplace(*nodes_[i]).first = i;
}

LayerRegion::LayerRegion(std::span<const Value> results, std::uint64_t trace, std::uint64_t first)
    : LayerRegion([&] {
        std::vector<const Node*> nodes = nodes_behind(results, [&](const Value& value) {
          return value && value->trace() == trace && value->id() >= first && !value.storage() &&
                 !(value->operands().empty() && is_leaf(*value.node()));
        });
        std::sort(nodes.begin(), nodes.end(),
                  [](const Node* a, const Node* b) { return a->id() < b->id(); });
        return nodes;
      }()) {
  results_.assign(results.begin(), results.end());
}

std::optional<std::size_t> LayerRegion::position(const Value& value) const {
  const std::size_t* found = value ? positions_.find(*value.node()) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

const std::string& LayerRegion::key(std::size_t at) {
  if (keys_[at].empty()) {
    keys_[at] = "#";
    if (nodes_[at]->attributes()) nodes_[at]->attributes()->append_key(keys_[at]);
  }
  return keys_[at];
}

bool LayerRegion::same_call(std::size_t a, std::size_t b) {
  return &node(a).op() == &node(b).op() && same_types(node(a), node(b)) &&
         node(a).operands().size() == node(b).operands().size() && key(a) == key(b) &&
         same_annotations(node(a), node(b));
}

bool same_annotations(const Node& a, const Node& b) {
  if (!a.annotations() || !b.annotations()) return a.annotations() == b.annotations();
  return *a.annotations() == *b.annotations();
}

std::vector<SlicedStack> sliced_stacks(const LayerRegion& region) {
  std::vector<SlicedStack> all;
  std::map<std::pair<const Node*, std::uint32_t>, std::size_t> known;
  std::unordered_map<std::size_t, std::pair<std::size_t, std::size_t>> of_slice;  // stack, layer
  for (std::size_t at = 0; at < region.size(); ++at) {
    const Node& node = region.node(at);
    if (&node.op() == &layer_slice_op) {
      const Value& stacked = node.operands()[0];
      auto layers = static_cast<std::size_t>(stacked.type().shape[0]);
      auto [entry, is_new] = known.try_emplace({stacked.node(), stacked.index()}, all.size());
      if (is_new)
        all.push_back({stacked, std::vector<std::vector<std::size_t>>(layers),
                       std::vector<std::size_t>(layers, region.size())});
      auto layer = static_cast<std::size_t>(node.attributes_as<LayerSliceAttributes>().layer);
      all[entry->second].slices[layer].push_back(at);
      of_slice[at] = {entry->second, layer};
    }
    for (const Value& operand : node.operands())
      if (auto from = region.position(operand))
        if (auto found = of_slice.find(*from); found != of_slice.end()) {
          std::size_t& use = all[found->second.first].first_use[found->second.second];
          use = std::min(use, at);
        }
  }
  std::erase_if(all, [](const SlicedStack& stack) {
    return std::any_of(stack.slices.begin(), stack.slices.end(),
                       [](const auto& each) { return each.empty(); });
  });
  return all;
}

std::vector<LayerCluster> layer_clusters(const std::vector<SlicedStack>& stacks) {
  std::vector<LayerCluster> clusters;
  for (const SlicedStack& stack : stacks) {
    auto count = static_cast<std::int64_t>(stack.slices.size());
    if (count < kFewestLayers) continue;
    std::vector<std::size_t> uses = stack.first_use;
    bool reverse = uses.front() > uses.back();
    if (reverse) std::reverse(uses.begin(), uses.end());
    auto joins = [&](const LayerCluster& cluster) {
      if (cluster.count != count || cluster.reverse != reverse) return false;
      for (std::size_t i = 0; i + 1 < uses.size(); ++i)
        if (std::max(cluster.uses[i].second, uses[i]) >=
            std::min(cluster.uses[i + 1].first, uses[i + 1]))
          return false;
      return true;
    };
    auto found = std::find_if(clusters.begin(), clusters.end(), joins);
    if (found == clusters.end()) {
      LayerCluster cluster{count, reverse, {}, {}};
      for (std::size_t use : uses) cluster.uses.emplace_back(use, use);
      found = clusters.insert(clusters.end(), std::move(cluster));
    }
    found->stacks.push_back(&stack);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      auto& [least, most] = found->uses[i];
      least = std::min(least, uses[i]);
      most = std::max(most, uses[i]);
    }
  }
  // Layers inside of layers first.
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const LayerCluster& a, const LayerCluster& b) {
                     return a.uses.back().second - a.uses.front().first <
                            b.uses.back().second - b.uses.front().first;
                   });
  return clusters;
}

}  // namespace meshard::internal
