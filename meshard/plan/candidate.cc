#include "meshard/plan/candidate.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/explain/module_layout.h"

namespace meshard {
namespace {

std::int64_t size_of(const AxisRef& ref, const std::vector<MeshAxis>& axes) {
  auto found = std::ranges::find(axes, ref.name, &MeshAxis::name);
  if (found == axes.end()) {
    std::vector<std::string> names;
    for (const MeshAxis& axis : axes) names.push_back(axis.name);
    throw_invalid({}, "[plan] a spec uses axis ", ref, ", but the mesh has ", join(names, ", "));
  }
  return ref.is_whole() ? found->size : ref.size;
}

std::int64_t tiles_of(const DimensionSpec& dimension, const std::vector<MeshAxis>& axes) {
  std::int64_t tiles = 1;
  for (const AxisRef& axis : dimension.axes()) tiles *= size_of(axis, axes);
  return tiles;
}

bool names_axis(const PartitionSpec& spec, std::string_view name) {
  for (const DimensionSpec& dimension : spec.dimensions())
    for (const AxisRef& axis : dimension.axes())
      if (axis.name == name) return true;
  return false;
}

void append_shapes(std::int64_t devices, std::size_t count, std::vector<std::int64_t>& sizes,
                   std::vector<std::vector<std::int64_t>>& out) {
  if (count == 1) {
    out.push_back(sizes);
    out.back().push_back(devices);
    return;
  }
  for (std::int64_t size = 1; size <= devices; ++size)
    if (devices % size == 0) {
      sizes.push_back(size);
      append_shapes(devices / size, count - 1, sizes, out);
      sizes.pop_back();
    }
}

// Recursively assigns unused[next], unused[next + 1], ... to no dimension and to each open
// dimension that the axes divide.
void append_specs(const FreeValue& value, const std::vector<MeshAxis>& axes,
                  const std::vector<const MeshAxis*>& unused, std::size_t next,
                  std::vector<AxisList>& chosen, std::vector<PartitionSpec>& out) {
  if (next == unused.size()) {
    std::vector<DimensionSpec> dimensions;
    for (const AxisList& list : chosen) dimensions.emplace_back(list);
    out.emplace_back(std::move(dimensions));
    return;
  }
  append_specs(value, axes, unused, next + 1, chosen, out);
  for (std::size_t d = 0; d < value.spec.size(); ++d) {
    if (!value.spec[d].is_open()) continue;
    std::int64_t tiles = tiles_of(DimensionSpec(chosen[d]), axes) * unused[next]->size;
    std::int64_t size = value.type.shape[static_cast<std::int64_t>(d)];
    if (size == 0 || size % tiles != 0) continue;
    AxisList before = chosen[d];
    chosen[d].push_back(AxisRef(unused[next]->name));
    append_specs(value, axes, unused, next + 1, chosen, out);
    chosen[d] = before;
  }
}

}  // namespace

std::string PlanCandidate::to_string() const { return to_string({}); }

std::string PlanCandidate::to_string(const std::vector<std::string>& names) const {
  std::string text = axes_text(axes);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    bool named = i < names.size() && !names[i].empty();
    append(text, "; ", named ? cat(names[i], ": ") : "", specs[i]);
  }
  return text;
}

bool is_open(const PartitionSpec& spec) {
  return std::ranges::any_of(spec.dimensions(), &DimensionSpec::is_open);
}

bool is_open(const PlanCandidate& candidate) {
  return std::ranges::any_of(candidate.specs,
                             [](const PartitionSpec& spec) { return is_open(spec); });
}

std::vector<std::vector<std::int64_t>> mesh_shapes(std::int64_t devices, std::size_t count) {
  if (devices < 1 || count < 1)
    throw_invalid({}, "[plan] cannot form a mesh of ", devices, " devices with ", count, " axes");
  std::vector<std::vector<std::int64_t>> out;
  std::vector<std::int64_t> sizes;
  append_shapes(devices, count, sizes, out);
  return out;
}

bool divides(const PartitionSpec& spec, const Shape& shape, const std::vector<MeshAxis>& axes) {
  if (spec.size() > static_cast<std::size_t>(shape.rank()))
    throw_invalid({}, "[plan] ", spec, " has more entries than the shape ", shape);
  for (std::size_t d = 0; d < spec.size(); ++d)
    if (shape[static_cast<std::int64_t>(d)] % tiles_of(spec[d], axes) != 0) return false;
  return true;
}

double shard_bytes(const PartitionSpec& spec, const TensorType& type,
                   const std::vector<MeshAxis>& axes) {
  double bytes = static_cast<double>(type.bytes());
  for (const DimensionSpec& dimension : spec.dimensions())
    bytes /= static_cast<double>(tiles_of(dimension, axes));
  return bytes;
}

std::vector<PartitionSpec> spec_candidates(const FreeValue& value,
                                           const std::vector<MeshAxis>& axes) {
  std::vector<PartitionSpec> out;
  if (!divides(value.spec, value.type.shape, axes)) return out;
  std::vector<const MeshAxis*> unused;
  for (const MeshAxis& axis : axes)
    if (axis.size > 1 && !names_axis(value.spec, axis.name)) unused.push_back(&axis);
  std::vector<AxisList> chosen;
  for (const DimensionSpec& dimension : value.spec.dimensions()) chosen.push_back(dimension.axes());
  append_specs(value, axes, unused, 0, chosen, out);
  return out;
}

}  // namespace meshard
