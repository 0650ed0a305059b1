#include "meshard/explain/report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "meshard/base/saturating.h"

namespace meshard {

ProgramReport::ProgramReport(Parts parts) : parts_(std::move(parts)) {
  if (parts_.logical_collectives.empty())
    parts_.logical_collectives = merge_fragments(parts_.collectives);
  groups_ = group_collectives(whole_collectives(parts_.logical_collectives));
}

std::vector<Mesh> ProgramReport::Parts::meshes() const {
  std::vector<Mesh> all;
  auto add = [&](const Mesh& one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  };
  if (mesh) add(*mesh);
  for (const auto* list : {&arguments, &results, &intermediates})
    for (const ValuePlacement& value : *list)
      if (value.sharding) add(value.sharding->mesh());
  return all;
}

bool ProgramReport::Parts::fits() const {
  if (!out_of_memory.empty()) return false;
  return !memory || memory->spare().value_or(0) >= 0;
}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind) const {
  std::vector<Collective> found;
  std::copy_if(parts_.collectives.begin(), parts_.collectives.end(), std::back_inserter(found),
               [&](const Collective& one) { return one.kind == kind; });
  return found;
}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind,
                                                   const AxisList& axes) const {
  std::vector<Collective> found = collectives(kind);
  std::erase_if(found, [&](const Collective& one) { return !one.axes || *one.axes != axes; });
  return found;
}

std::int64_t ProgramReport::collective_bytes() const {
  std::int64_t sum = 0;
  for (const LogicalCollective& one : parts_.logical_collectives)
    sum = saturating_add(sum, one.whole.total_bytes());
  return sum;
}

}  // namespace meshard
