#include "meshard/explain/collectives/collective_tensors.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

std::string in_graph(const OriginPlace& place, const Graph& graph) {
  if (!place.node) return "";
  std::uint32_t number = *place.node, leaves = graph.num_leaves();
  if (number >= leaves) {
    const Node* node = graph.find(place.path.empty() ? std::to_string(number) : place.path);
    return node ? cat(node->op().name, " ", node->type()) : std::string();
  }
  std::size_t parameters = graph.parameters().size();
  const Value& leaf =
      number < parameters ? graph.parameters()[number] : graph.captured()[number - parameters];
  return cat(place.op, " ", leaf.type());
}

}  // namespace

void name_tensors(std::vector<Collective>& collectives, const std::vector<Reshard>& reshards,
                  const std::vector<ValuePlacement>& intermediates, const Graph* graph) {
  std::unordered_map<std::string_view, const Reshard*> reshard_of;
  for (const Reshard& each : reshards)
    if (!each.type.empty()) reshard_of.emplace(each.instruction, &each);
  std::unordered_map<std::string_view, const ValuePlacement*> value_of;
  for (const ValuePlacement& each : intermediates) value_of.emplace(each.name, &each);
  for (Collective& one : collectives) {
    if (auto reshard = reshard_of.find(one.instruction); reshard != reshard_of.end()) {
      one.tensor = reshard->second->type;
      continue;
    }
    if (one.origin.places.empty()) continue;
    const OriginPlace& place = one.origin.places[0];
    if (graph) {
      one.tensor = in_graph(place, *graph);
    } else if (auto value = value_of.find(place.op); value != value_of.end()) {
      one.tensor = cat(place.op, " ", value->second->type);
    }
  }
}

}  // namespace meshard
