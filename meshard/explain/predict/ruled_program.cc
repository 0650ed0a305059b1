#include "meshard/explain/predict/ruled_program.h"

#include "meshard/base/saturating.h"

namespace meshard {

std::size_t RuledProgram::add_loop(std::size_t parent, std::optional<std::int64_t> trips) {
  RuledRegion loop = regions[parent];
  loop.parent = parent;
  loop.executions = saturating_multiply(loop.executions, trips.value_or(1));
  loop.executions_known = loop.executions_known && trips.has_value();
  loop.first_branch = std::nullopt;
  regions.push_back(loop);
  return regions.size() - 1;
}

std::size_t RuledProgram::add_branch(std::size_t parent, std::optional<std::size_t> first) {
  RuledRegion branch = regions[parent];
  branch.parent = parent;
  branch.conditional = true;
  branch.first_branch = first.value_or(regions.size());
  regions.push_back(branch);
  return regions.size() - 1;
}

bool RuledProgram::is_inside(std::size_t inner, std::size_t outer) const {
  while (inner > outer) inner = regions[inner].parent;
  return inner == outer;
}

std::vector<bool> regions_with_most(const RuledProgram& program, const std::vector<double>& bytes) {
  const std::vector<RuledRegion>& regions = program.regions;
  // Regions after their parents: from the last to the first, each is complete when it is read.
  std::vector<double> all = bytes;
  std::vector<std::size_t> most(regions.size());  // by first branch
  for (std::size_t r = regions.size(); r-- > 1;) {
    const RuledRegion& region = regions[r];
    if (!region.first_branch) {
      all[region.parent] += all[r];
      continue;
    }
    std::size_t& best = most[*region.first_branch];
    if (best == 0 || all[r] >= all[best]) best = r;
    if (r == *region.first_branch) all[region.parent] += all[best];
  }
  std::vector<bool> counted(regions.size(), true);
  for (std::size_t r = 1; r < regions.size(); ++r) {
    const RuledRegion& region = regions[r];
    bool taken = !region.first_branch || most[*region.first_branch] == r;
    counted[r] = taken && counted[region.parent];
  }
  return counted;
}

}  // namespace meshard
