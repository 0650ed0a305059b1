// Manual functions, and what collectives need to know inside of them.
#include <algorithm>
#include <numeric>

#include "tests/property/sharded_program/draw.h"

namespace meshard::property {

std::optional<Draw::Region> Draw::manual_region(Step& step, const Known& x) {
  Region region = region_;
  auto rank = static_cast<std::size_t>(x.type().rank());
  if (!element_wise_) {
    std::optional<Placement> where = mark(x.type().rank());
    if (!where || !may_mark(x)) return std::nullopt;
    region = {where->mesh, {}, {}, {}, true};
    region.left.resize(meshes_[static_cast<std::size_t>(region.mesh)].axes().size());
    std::iota(region.left.begin(), region.left.end(), std::int64_t{0});
  }
  region.splits.resize(rank);  // a scalar is not split
  if (region.left.empty()) return std::nullopt;
  std::vector<std::int64_t> own = region.left;
  std::shuffle(own.begin(), own.end(), random_);
  bool some = kind_ == Kind::kTransforms && own.size() > 1 && one_in(2);
  if (some) own.resize(static_cast<std::size_t>(between(1, static_cast<int>(own.size()) - 1)));
  std::vector<AxisList> axes(rank);
  for (std::int64_t axis : own) {
    std::erase(region.left, axis);
    region.manual.push_back(axis);
    if (rank == 0 || one_in(4)) continue;
    auto d = static_cast<std::size_t>(between(0, x.type().rank() - 1));
    const auto& all = meshes_[static_cast<std::size_t>(region.mesh)].axes();
    axes[d].push_back(AxisRef(all[static_cast<std::size_t>(axis)].name));
    region.splits[d].push_back(axis);
  }
  step.placement = {region.mesh, PartitionSpec({axes.begin(), axes.end()})};
  step.lists = {some || element_wise_ ? own : std::vector<std::int64_t>()};
  return region;
}

std::optional<std::pair<std::int64_t, Draw::Region>> Draw::stage_region(Step& step) {
  if (stage_depth_ > 0 || element_wise_) return std::nullopt;
  std::optional<Placement> where = mark(1);
  if (!where) return std::nullopt;
  const auto& axes = meshes_[static_cast<std::size_t>(where->mesh)].axes();
  Region region{where->mesh, {}, {}, {}, false};
  std::int64_t stages = 1, others = 1;
  AxisList names;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    bool is_manual = one_in(2) && stages * axes[a].size <= 4;
    (is_manual ? region.manual : region.left).push_back(static_cast<std::int64_t>(a));
    (is_manual ? stages : others) *= axes[a].size;
    if (is_manual) names.emplace_back(axes[a].name);
  }
  if (stages == 1 || others == 1) return std::nullopt;
  step.placement = {region.mesh, PartitionSpec({DimensionSpec(names)})};
  step.lists = {region.manual};
  return std::pair(stages, std::move(region));
}

const MeshAxis& Draw::region_axis(std::int64_t axis) const {
  return meshes_[static_cast<std::size_t>(region_.mesh)].axes()[static_cast<std::size_t>(axis)];
}

// Into how many parts dimension d of a value of this shape is split.
std::int64_t Draw::parts_of(const Shape& shape, std::size_t d) const {
  std::int64_t parts = 1;
  if (shape.rank() > 0)
    for (std::int64_t axis : region_.splits[d]) parts *= region_axis(axis).size;
  return parts;
}

bool Draw::along_axis(Step& step, const Shape& shape, bool must_split) {
  std::int64_t axis = one_of(region_.manual), size = region_axis(axis).size;
  step.placement = {region_.mesh, {}};
  step.lists = {{-1, 1, size, 1, 1}, {axis}};
  for (std::size_t d = 0; d < static_cast<std::size_t>(shape.rank()); ++d) {
    const std::vector<std::int64_t>& splits = region_.splits[d];
    auto at = std::find(splits.begin(), splits.end(), axis);
    if (at == splits.end()) continue;
    auto product = [&](auto from, auto to) {
      return std::accumulate(from, to, std::int64_t{1}, [&](std::int64_t count, std::int64_t each) {
        return count * region_axis(each).size;
      });
    };
    std::int64_t before = product(splits.begin(), at), after = product(at + 1, splits.end());
    std::int64_t extent = shape[static_cast<int>(d)], parts = before * size * after;
    step.lists[0] = {static_cast<std::int64_t>(d), before, size, after, extent / parts};
    return extent % parts == 0;
  }
  return !must_split;
}

bool Draw::along_all_axes(Step& step, const Shape& shape) {
  step.placement = {region_.mesh, {}};
  step.lists = {{}, {shape.size()}};
  for (int d = 0; d < shape.rank(); ++d) {
    auto at = static_cast<std::size_t>(d);
    if (shape[d] % parts_of(shape, at) != 0) return false;
    step.lists[0].insert(step.lists[0].end(), region_.splits[at].begin(), region_.splits[at].end());
  }
  return true;
}

std::optional<int> Draw::other_dimension(const Step& step, const Shape& shape, std::int64_t count) {
  for (int d = 0; d < shape.rank(); ++d) {
    std::int64_t parts = parts_of(shape, static_cast<std::size_t>(d));
    if (d != step.lists[0][0] && shape[d] % (parts * count) == 0) return d;
  }
  return std::nullopt;
}

}  // namespace meshard::property
