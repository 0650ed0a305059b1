#include "tools/conformance/devicemesh/layout_adapter.h"

#include <algorithm>

#include "meshard/layout/algebra.h"
#include "meshard/layout/modes.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/nested_json.h"

namespace meshard::conformance {
namespace {

std::size_t clipped(std::int64_t index, std::size_t count) {
  std::int64_t size = static_cast<std::int64_t>(count);
  if (index < 0) index += size;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, size));
}

}  // namespace

std::size_t python_index(std::int64_t index, std::size_t count) {
  std::int64_t size = static_cast<std::int64_t>(count);
  if (index < -size || index >= size) throw GoldenError("IndexError", "index_out_of_range");
  return static_cast<std::size_t>(index < 0 ? index + size : index);
}

std::vector<Layout> splice(std::span<const Layout> list, std::int64_t start, std::int64_t end,
                           std::span<const Layout> with) {
  std::size_t from = clipped(start, list.size());
  std::size_t to = std::max(from, clipped(end, list.size()));
  std::vector<Layout> result(list.begin(), list.begin() + from);
  result.insert(result.end(), with.begin(), with.end());
  result.insert(result.end(), list.begin() + to, list.end());
  return result;
}

std::vector<Layout> modes_of(const Layout& layout) {
  std::vector<Layout> modes;
  for (std::size_t i = 0; i < layout.rank(); ++i) modes.push_back(layout.mode(i));
  return modes;
}

Layout axis_of(const Layout& layout) {
  Layout shortest = coalesce(layout);
  if (shortest.size() == 1) return {};
  if (!shortest.shape().is_integer()) return shortest;
  return Layout(IntTuple{shortest.shape()}, IntTuple{shortest.stride()});
}

std::vector<Layout> axes_of(const Json& json) {
  std::vector<Layout> axes = layouts_of(json);
  for (Layout& axis : axes) axis = axis_of(axis);
  return axes;
}

Json json_of_axes(std::span<const Layout> axes) {
  Json json = Json::array();
  for (const Layout& axis : axes) json.push_back(json_of(axis));
  return json;
}

Layout merged(std::span<const Layout> axes) { return axis_of(concatenate(axes)); }

bool is_sorted(const Layout& axis) {
  std::span<const std::int64_t> strides = axis.stride().leaves();
  return std::is_sorted(strides.rbegin(), strides.rend());
}

std::vector<Layout> unflatten(std::span<const Layout> modes, std::size_t k, const IntTuple& sizes) {
  std::vector<Layout> parts = modes_of(composition(modes[k], Layout(sizes)).value());
  std::int64_t at = static_cast<std::int64_t>(k);
  return splice(modes, at, at + 1, parts);
}

std::vector<Layout> with_rows(std::span<const Layout> dims, std::int64_t world) {
  std::vector<Layout> all = {complement(concatenate(dims), world).value()};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

Json global_ranks(const Layout& layout, std::int64_t world) {
  Layout rows = complement(layout, world).value();
  Json groups = Json::array();
  for (std::int64_t offset : values_of(rows)) {
    Json group = Json::array();
    for (std::int64_t value : values_of(layout)) group.push_back(offset + value);
    groups.push_back(std::move(group));
  }
  return groups;
}

Json remap(std::span<const Layout> dims, const std::vector<std::int64_t>& rank_map) {
  std::int64_t world = static_cast<std::int64_t>(rank_map.size());
  Layout whole = concatenate(dims);
  if (whole.cosize() > world) throw GoldenError("AssertionError", "rank_map_too_small");
  std::vector<Layout> all = with_rows(dims, world);
  Layout tensor = concatenate(all);
  if (tensor.cosize() > world) throw GoldenError("RuntimeError", "storage_out_of_bounds");
  std::vector<std::int64_t> shape;
  for (const Layout& dim : all) shape.push_back(dim.size());
  std::vector<std::int64_t> data = values_of(tensor);
  for (std::int64_t& value : data) value = rank_map[static_cast<std::size_t>(value)];
  return {{"shape", shape}, {"data", nested(data, shape)}};
}

}  // namespace meshard::conformance
