#include "meshard/lowering/internal/quirks_in_regions.h"

#include <algorithm>

#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

// Whether the op, or one in its bodies, is a permutation between devices.
bool permutes(const Node& node) {
  if (&node.op() == &collective_permute_op) return true;
  std::span<const Body> bodies = bodies_of(node);
  return std::any_of(bodies.begin(), bodies.end(), [](const Body& body) {
    std::span<const Node* const> nodes = body.graph().nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* each) { return permutes(*each); });
  });
}

// Whether devices may take different branches, or leave the loop at different turns.
bool predicate_varies(const Node& node) {
  auto varies = [](const Value& predicate) {
    const ManualAxes* place = manual_axes(predicate);
    return place && !place->varying.empty();
  };
  if (&node.op() == &switch_case_op) return varies(node.operands()[0]);
  if (&node.op() == &while_loop_op) return varies(bodies_of(node)[0].graph().results()[0]);
  return false;
}

// The number of devices along the axes that are not manual.
std::int64_t automatic_size(const ManualAxes& place) {
  std::int64_t size = place.mesh.size();
  for (std::size_t a = 0; a < place.mesh.rank(); ++a)
    if (place.axes.contains(a)) size /= place.mesh.axes()[a].size;
  return size;
}

}  // namespace

bool is_gathered_in_region(const Node& node, const ManualAxes& place, QuirkSet quirks) {
  if (automatic_size(place) == 1) return false;
  std::span<const QuirkRow> rows = quirk_table();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].gathers(node.op().name)) return quirks.has(static_cast<Quirk>(i));
  return false;
}

bool runs_on_all_devices(const Node& node, const ManualAxes& place, QuirkSet quirks) {
  return quirks.has(Quirk::kDifferentBranches) && predicate_varies(node) &&
         (automatic_size(place) > 1 || permutes(node));
}

}  // namespace meshard
