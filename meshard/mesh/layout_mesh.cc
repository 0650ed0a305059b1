// A mesh from a layout and a rank map.
#include <algorithm>

#include "meshard/base/saturating.h"
#include "meshard/mesh/mesh.h"

namespace meshard {
namespace {

// The smallest number of ranks that the layout fits. Sizes and strides that it rejects are left to
// the constructor.
std::int64_t ranks_of(const Layout& layout) {
  std::int64_t ranks = 1;
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) ranks = std::max(ranks, saturating_multiply(sizes[i], strides[i]));
  return ranks;
}

}  // namespace

Mesh::Mesh(const Layout& layout, RankMap rank_map, const std::vector<std::string>& names,
           SourceLocation where) {
  bool single = layout.shape().is_integer();
  std::size_t modes = layout.rank();
  if (names.size() != modes)
    throw_invalid(where, "[mesh] ", names.size(), " axis names for the ", modes, " modes of ",
                  layout);
  Axes own;
  std::vector<MeshAxis> checked;
  for (std::size_t i = 0; i < modes; ++i) {
    Layout mode = single ? layout : layout.mode(i);
    own.push_back({names[i], {}});
    checked.push_back({names[i], mode.size()});
    for (std::size_t leaf = 0; leaf < mode.shape().leaves().size(); ++leaf) {
      Digit digit{mode.shape().leaves()[leaf], mode.stride().leaves()[leaf]};
      if (digit.size > 1 && digit.stride < 1)
        throw_invalid(where, "[mesh] axis \"", names[i], "\" = ", mode, " has stride ",
                      digit.stride, "; it must be at least 1");
      if (digit.size > 1) own.back().digits.push_back(digit);
    }
  }
  check_mesh_axes(checked, where);
  Digits all = merged(own);
  std::int64_t ranks = rank_map.size();
  if (!all.is_orthogonal())
    throw_invalid(where, "[mesh] modes of ", layout,
                  " overlap, or are not multiples of one another");
  if (!all.lies_within(ranks))
    throw_invalid(where, "[mesh] ", layout, " does not fit the ", ranks,
                  " positions of the rank map: size times stride of its slowest mode must divide "
                  "their number");
  Mesh root({{"ranks", ranks}}, std::move(rank_map), where);
  *this = root.derive(own, where);
}

Mesh::Mesh(const Layout& layout, const std::vector<std::string>& names, SourceLocation where)
    : Mesh(layout, RankMap::identity(ranks_of(layout)), names, where) {}

}  // namespace meshard
