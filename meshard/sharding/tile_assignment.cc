#include "meshard/sharding/tile_assignment.h"

#include <algorithm>
#include <numeric>

#include "meshard/layout/coalesce.h"

namespace meshard {
namespace {

std::int64_t product(const std::vector<std::int64_t>& values) {
  return IntTuple::flat(values).product();
}

Error invalid(const TileAssignment& tiles, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[tile_assignment] ", tiles.to_string(), ": ", why));
}

bool is_permutation_of_iota(const std::vector<std::int64_t>& values) {
  std::vector<bool> seen(values.size());
  for (std::int64_t value : values) {
    if (value < 0 || value >= static_cast<std::int64_t>(seen.size())) return false;
    if (seen[static_cast<std::size_t>(value)]) return false;
    seen[static_cast<std::size_t>(value)] = true;
  }
  return true;
}

Result<void> validate_tiled(const TileAssignment& tiles) {
  std::size_t subgroups = tiles.replicate_on_last_tile_dim ? 1 : tiles.last_tile_dims.size();
  if (tiles.replicate_on_last_tile_dim && !tiles.last_tile_dims.empty())
    return invalid(tiles, "both last_tile_dim_replicate and last_tile_dims");
  if (tiles.dims.empty() || tiles.dims.size() < subgroups)
    return invalid(tiles, "too few dimensions");
  for (const auto* sizes : {&tiles.dims, &tiles.reshape_dims})
    for (std::int64_t size : *sizes)
      if (size < 1) return invalid(tiles, "a size is below 1");
  for (TileKind kind : tiles.last_tile_dims)
    if (kind == TileKind::kTiled || kind == TileKind::kMaximal)
      return invalid(tiles, cat("a subgroup cannot be ", meshard::to_string(kind)));
  if (tiles.is_iota() == !tiles.devices.empty())
    return invalid(tiles, "it needs a list of devices or an iota, not both");
  if (tiles.is_iota()) {
    if (tiles.transpose_perm.size() != tiles.reshape_dims.size() ||
        !is_permutation_of_iota(tiles.transpose_perm))
      return invalid(tiles, "the transposition is no permutation of the reshaped dimensions");
    if (product(tiles.reshape_dims) != product(tiles.dims))
      return invalid(
          tiles, cat(product(tiles.reshape_dims), " devices for ", product(tiles.dims), " tiles"));
    return {};
  }
  if (static_cast<std::int64_t>(tiles.devices.size()) != product(tiles.dims))
    return invalid(tiles,
                   cat(tiles.devices.size(), " devices for ", product(tiles.dims), " tiles"));
  if (!is_permutation_of_iota(tiles.devices))
    return invalid(tiles, cat("the devices are not 0..", tiles.devices.size() - 1, ", each once"));
  return {};
}

// Position digits of all axes in tile order, joined, with the sizes each dimension of the
// assignment has.
struct TileDigits {
  IntVector sizes, strides;
  void append(const AxesIndex& index) {
    Layout layout = index.layout();
    for (std::int64_t size : layout.shape().leaves()) sizes.push_back(size);
    for (std::int64_t stride : layout.stride().leaves()) strides.push_back(stride);
  }
};

}  // namespace

std::string_view to_string(TileKind kind) {
  switch (kind) {
    case TileKind::kReplicated: return "replicated";
    case TileKind::kMaximal: return "maximal";
    case TileKind::kTiled: return "tiled";
    case TileKind::kManual: return "manual";
    case TileKind::kUnknown: return "unknown";
    case TileKind::kUnreduced: return "unreduced";
  }
  return "unknown";
}

Layout TileAssignment::iota_layout() const {
  Layout compact{IntTuple::flat(reshape_dims)};
  IntVector sizes, strides;
  for (std::int64_t from : transpose_perm) {
    sizes.push_back(compact.shape().leaves()[static_cast<std::size_t>(from)]);
    strides.push_back(compact.stride().leaves()[static_cast<std::size_t>(from)]);
  }
  return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
}

std::vector<std::int64_t> TileAssignment::device_list() const {
  if (!is_iota()) return devices;
  Layout layout = iota_layout();
  std::vector<std::int64_t> list(static_cast<std::size_t>(layout.size()));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = layout(static_cast<std::int64_t>(i));
  return list;
}

TileAssignment TileAssignment::listed() const {
  TileAssignment result = *this;
  if (is_iota()) {
    result.devices = device_list();
    result.reshape_dims.clear();
    result.transpose_perm.clear();
  }
  return result;
}

Result<void> TileAssignment::validate() const {
  if (kind == TileKind::kTiled) {
    try {
      return validate_tiled(*this);
    } catch (const Error& error) {  // a product that does not fit
      return error;
    }
  }
  bool one_device = kind == TileKind::kMaximal && devices.size() == 1 && devices[0] >= 0;
  if (kind == TileKind::kMaximal ? !one_device : !devices.empty())
    return invalid(*this, "only a maximal assignment has one device");
  if (!dims.empty() || is_iota() || replicate_on_last_tile_dim || !last_tile_dims.empty())
    return invalid(*this, "only a tiled assignment has dimensions");
  return {};
}

TileAssignment tile_assignment(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  TileAssignment tiles;
  TileDigits digits;
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    digits.append(AxesIndex(mesh, sharding.axes(d)));
    tiles.dims.push_back(sharding.num_tiles(d));
  }
  AxesIndex unreduced(mesh, sharding.unreduced_axes());
  AxisList splitting = sharding.unreduced_axes();
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    for (const AxisRef& axis : sharding.axes(d)) splitting.push_back(axis);
  AxesIndex replicated(mesh, remaining_axes(mesh, splitting));

  if (sharding.is_fully_replicated() && (unreduced.size() == 1 || replicated.size() == 1)) {
    tiles.dims.clear();
    tiles.kind = unreduced.size() == 1 ? TileKind::kReplicated : TileKind::kUnreduced;
    return tiles;
  }
  tiles.kind = TileKind::kTiled;
  digits.append(unreduced);
  digits.append(replicated);
  if (unreduced.size() > 1) {
    tiles.dims.push_back(unreduced.size());
    tiles.last_tile_dims.push_back(TileKind::kUnreduced);
    if (replicated.size() > 1) {
      tiles.dims.push_back(replicated.size());
      tiles.last_tile_dims.push_back(TileKind::kReplicated);
    }
  } else if (replicated.size() > 1) {
    tiles.dims.push_back(replicated.size());
    tiles.replicate_on_last_tile_dim = true;
  }
  // The digits cover all positions: sorted by stride they are the reshape, their order is the
  // transposition.
  Layout layout = coalesce(Layout(IntTuple::flat(digits.sizes), IntTuple::flat(digits.strides)));
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  std::vector<std::size_t> by_stride(sizes.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::sort(by_stride.begin(), by_stride.end(),
            [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  tiles.transpose_perm.resize(sizes.size());
  for (std::size_t k = 0; k < by_stride.size(); ++k) {
    tiles.reshape_dims.push_back(sizes[by_stride[k]]);
    tiles.transpose_perm[by_stride[k]] = static_cast<std::int64_t>(k);
  }
  return tiles;
}

}  // namespace meshard
