#include "meshard/nn/axis_rules.h"

#include <algorithm>

#include "meshard/graph/record.h"
#include "meshard/ops/composite/mark_sharding.h"

namespace meshard::nn {

AxisRules::AxisRules(Mesh mesh, std::vector<Rule> rules, SourceLocation where)
    : mesh_(std::move(mesh)), rules_(std::move(rules)) {
  CallScope line(where, "in nn::AxisRules");
  // Creating a sharding for each rule checks that the mesh has its axes.
  for (const Rule& rule : rules_) Sharding(*mesh_, P(rule.second));
}

DimensionSpec AxisRules::axes_of(const DimensionSpec& names) const {
  AxisList axes;
  bool is_open = names.is_open();
  for (const AxisRef& name : names.axes()) {
    if (name.is_position()) {
      axes.push_back(mesh_->named(name));
      continue;
    }
    auto rule = std::find_if(rules_.begin(), rules_.end(),
                             [&](const Rule& each) { return each.first == name.name; });
    if (rule != rules_.end()) {
      for (const AxisRef& axis : rule->second.axes()) axes.push_back(mesh_->named(axis));
      is_open = is_open || rule->second.is_open();
    } else if (mesh_->find_axis(name.name)) {
      axes.push_back(name);
    }
  }
  return DimensionSpec(std::move(axes), is_open);
}

PartitionSpec AxisRules::spec(const PartitionSpec& names, SourceLocation where) const {
  CallScope line(where, "in nn::AxisRules::spec");
  std::vector<DimensionSpec> dimensions(names.size());
  std::vector<AxisRef> used;
  for (std::size_t d = 0; mesh_ && d < names.size(); ++d) {
    DimensionSpec wanted = axes_of(names[d]);
    AxisList free;
    for (const AxisRef& axis : wanted.axes()) {
      if (std::find(used.begin(), used.end(), axis) != used.end()) continue;
      used.push_back(axis);
      free.push_back(axis);
    }
    dimensions[d] = DimensionSpec(std::move(free), wanted.is_open());
  }
  return PartitionSpec(std::move(dimensions));
}

std::optional<Sharding> AxisRules::sharding(const PartitionSpec& names,
                                            SourceLocation where) const {
  CallScope line(where, "in nn::AxisRules::sharding");
  if (!mesh_) return std::nullopt;
  return Sharding(*mesh_, spec(names));
}

Tensor AxisRules::mark(In x, const PartitionSpec& names) const {
  CallScope line(x.where, "in nn::AxisRules::mark");
  if (!mesh_) return *x.tensor;
  return mark_sharding(x, *mesh_, spec(names));
}

}  // namespace meshard::nn
