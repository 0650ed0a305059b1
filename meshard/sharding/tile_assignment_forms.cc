// Conversions between the forms of a tile assignment.
#include <algorithm>
#include <numeric>

#include "meshard/layout/coalesce.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

// Drops subgroups of size 1, and stores a single subgroup of replicas as a flag.
void drop_unit_subgroups(TileAssignment& tiles) {
  std::size_t rank = tiles.rank();
  if (tiles.replicate_on_last_tile_dim) tiles.last_tile_dims = {TileKind::kReplicated};
  tiles.replicate_on_last_tile_dim = false;
  for (std::size_t k = tiles.last_tile_dims.size(); k-- > 0;) {
    auto at = static_cast<std::ptrdiff_t>(k);
    auto size = tiles.dims.begin() + static_cast<std::ptrdiff_t>(rank) + at;
    if (*size > 1) continue;
    tiles.dims.erase(size);
    tiles.last_tile_dims.erase(tiles.last_tile_dims.begin() + at);
  }
  if (tiles.last_tile_dims == std::vector<TileKind>{TileKind::kReplicated}) {
    tiles.last_tile_dims.clear();
    tiles.replicate_on_last_tile_dim = true;
  }
}

// True if one kind describes the whole assignment: nothing is tiled, and there is at most one
// subgroup.
bool has_one_kind(const TileAssignment& tiles) {
  auto end = tiles.dims.begin() + static_cast<std::ptrdiff_t>(tiles.rank());
  return tiles.last_tile_dims.size() <= 1 &&
         std::all_of(tiles.dims.begin(), end, [](std::int64_t size) { return size == 1; });
}

// Merges dimensions of the iota that stay contiguous. The merged sizes sorted by stride are the
// reshape; the order of the dimensions is the transposition.
void merge_iota(TileAssignment& tiles) {
  Layout layout = coalesce(tiles.iota_layout());
  std::span<const std::int64_t> sizes = layout.shape().leaves(), strides = layout.stride().leaves();
  std::vector<std::size_t> by_stride(sizes.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::sort(by_stride.begin(), by_stride.end(),
            [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  tiles.reshape_dims.clear();
  tiles.transpose_perm.resize(sizes.size());
  for (std::size_t k = 0; k < by_stride.size(); ++k) {
    tiles.reshape_dims.push_back(sizes[by_stride[k]]);
    tiles.transpose_perm[by_stride[k]] = static_cast<std::int64_t>(k);
  }
}

}  // namespace

TileAssignment TileAssignment::listed() const {
  TileAssignment result = *this;
  if (is_iota()) {
    result.devices = device_list();
    result.reshape_dims.clear();
    result.transpose_perm.clear();
  }
  return result;
}

TileAssignment TileAssignment::shortest() const {
  if (kind != TileKind::kTiled) return *this;
  TileAssignment result = *this;
  drop_unit_subgroups(result);
  if (has_one_kind(result))
    return {.kind =
                result.last_tile_dims.empty() ? TileKind::kReplicated : result.last_tile_dims[0]};
  if (result.is_iota()) merge_iota(result);
  return result;
}

TileAssignment TileAssignment::with_sorted_replicas() const {
  TileAssignment result = listed();
  bool replicas = replicate_on_last_tile_dim ||
                  (!last_tile_dims.empty() && last_tile_dims.back() == TileKind::kReplicated);
  if (!replicas) return result;
  auto group = static_cast<std::ptrdiff_t>(dims.back());
  for (auto first = result.devices.begin(); first != result.devices.end(); first += group)
    std::sort(first, first + group);
  return result;
}

TileAssignment TileAssignment::with_device_ids(const Mesh& mesh) const {
  TileAssignment result = listed();
  for (std::int64_t& device : result.devices) device = mesh.device_id(device);
  return result;
}

Result<TileAssignment> TileAssignment::with_positions(const Mesh& mesh) const {
  TileAssignment result = listed();
  for (std::int64_t& device : result.devices) {
    std::optional<std::int64_t> position = mesh.position(device);
    if (!position)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[tile_assignment] device ", device, " of ", *this, " is not in ", mesh));
    device = *position;
  }
  return result;
}

}  // namespace meshard
