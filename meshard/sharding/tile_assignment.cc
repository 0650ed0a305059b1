#include "meshard/sharding/tile_assignment.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "meshard/layout/algebra.h"
#include "meshard/layout/text_scanner.h"

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
    return invalid(tiles, "last_tile_dim_replicate and last_tile_dims cannot both be set");
  if (tiles.dims.empty() || tiles.dims.size() < subgroups)
    return invalid(tiles, "too few dimensions");
  for (const auto* sizes : {&tiles.dims, &tiles.reshape_dims})
    for (std::int64_t size : *sizes)
      if (size < 1) return invalid(tiles, "a size is below 1");
  for (TileKind kind : tiles.last_tile_dims)
    if (kind == TileKind::kTiled || kind == TileKind::kMaximal)
      return invalid(tiles, cat("a subgroup cannot be ", meshard::to_string(kind)));
  if (tiles.is_iota() == !tiles.devices.empty())
    return invalid(tiles, "it must have exactly one of a device list and an iota");
  if (tiles.is_iota()) {
    if (tiles.transpose_perm.size() != tiles.reshape_dims.size() ||
        !is_permutation_of_iota(tiles.transpose_perm))
      return invalid(tiles, "the transposition is not a permutation of the reshaped dimensions");
    if (product(tiles.reshape_dims) != product(tiles.dims))
      return invalid(
          tiles, cat(product(tiles.reshape_dims), " devices for ", product(tiles.dims), " tiles"));
    return {};
  }
  if (static_cast<std::int64_t>(tiles.devices.size()) != product(tiles.dims))
    return invalid(tiles,
                   cat(tiles.devices.size(), " devices for ", product(tiles.dims), " tiles"));
  std::vector<std::int64_t> sorted = tiles.devices;
  std::sort(sorted.begin(), sorted.end());
  if (sorted[0] < 0) return invalid(tiles, cat("device ", sorted[0], " is negative"));
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return invalid(tiles, cat("device ", *twice, " is listed twice"));
  return {};
}

// The place of each axis or sub-axis in mesh order: result[i] is the place of order[i] among all of
// them.
std::vector<std::int64_t> places_in_mesh(const Mesh& mesh, const AxisList& order) {
  std::vector<std::size_t> by_mesh(order.size());
  std::iota(by_mesh.begin(), by_mesh.end(), std::size_t{0});
  auto key = [&](std::size_t i) {
    return std::pair(mesh.axis_index(order[i].name), order[i].pre_size);
  };
  std::sort(by_mesh.begin(), by_mesh.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<std::int64_t> places(order.size());
  for (std::size_t k = 0; k < by_mesh.size(); ++k)
    places[by_mesh[k]] = static_cast<std::int64_t>(k);
  return places;
}

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

constexpr TileKind kWords[] = {TileKind::kReplicated, TileKind::kManual, TileKind::kUnknown,
                               TileKind::kUnreduced};

std::optional<TileKind> read_word(TextScanner& scanner) {
  for (TileKind kind : kWords)
    if (scanner.accept(to_string(kind))) return kind;
  return std::nullopt;
}

std::vector<std::int64_t> read_numbers(TextScanner& scanner, std::string_view open_with,
                                       std::string_view close_with) {
  std::vector<std::int64_t> numbers;
  scanner.expect(open_with);
  scanner.list(close_with, [&] { numbers.push_back(scanner.integer()); });
  return numbers;
}

void read_devices(TextScanner& scanner, TileAssignment& tiles) {
  tiles.dims = read_numbers(scanner, "[", "]");
  if (!scanner.accept("<=")) {
    do {
      tiles.devices.push_back(scanner.integer());
    } while (scanner.accept(","));
    return;
  }
  tiles.reshape_dims = read_numbers(scanner, "[", "]");
  if (scanner.accept("T")) {
    tiles.transpose_perm = read_numbers(scanner, "(", ")");
  } else {
    tiles.transpose_perm.resize(tiles.reshape_dims.size());
    std::iota(tiles.transpose_perm.begin(), tiles.transpose_perm.end(), std::int64_t{0});
  }
}

void read_subgroups(TextScanner& scanner, TileAssignment& tiles) {
  if (scanner.accept("last_tile_dims")) {
    scanner.expect("=");
    scanner.expect("{");
    scanner.list("}", [&] {
      std::optional<TileKind> kind = read_word(scanner);
      if (!kind) scanner.fail("expected the kind of a subgroup");
      tiles.last_tile_dims.push_back(*kind);
    });
  } else if (scanner.accept("last_tile_dim_replicate")) {
    tiles.replicate_on_last_tile_dim = true;
  }
}

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

Result<void> TileAssignment::validate() const {
  if (kind == TileKind::kTiled) {
    // A product may not fit 64 bits.
    return caught([&] { return validate_tiled(*this); });
  }
  bool one_device = kind == TileKind::kMaximal && devices.size() == 1 && devices[0] >= 0;
  if (kind == TileKind::kMaximal ? !one_device : !devices.empty())
    return invalid(*this,
                   "a maximal assignment has exactly one non-negative device, and other untiled "
                   "assignments have none");
  if (!dims.empty() || is_iota() || replicate_on_last_tile_dim || !last_tile_dims.empty())
    return invalid(*this, "only a tiled assignment can have dimensions");
  return {};
}

TileAssignment axis_tile_assignment(const Sharding& sharding) {
  const Mesh& mesh = sharding.mesh();
  TileAssignment tiles{.kind = TileKind::kTiled};
  AxisList order;  // all axes of the mesh, in the order of the assignment's dimensions
  auto take = [&](const AxisList& axes) {
    for (const AxisRef& axis : axes) order.push_back(axis);
    return AxesIndex(mesh, axes).size();
  };
  for (std::size_t d = 0; d < sharding.rank(); ++d) tiles.dims.push_back(take(sharding.axes(d)));
  std::int64_t unreduced = take(sharding.unreduced_axes());
  std::int64_t replicas = take(remaining_axes(mesh, order));
  if (unreduced > 1) {
    tiles.dims.push_back(unreduced);
    tiles.last_tile_dims.push_back(TileKind::kUnreduced);
    if (replicas > 1) tiles.last_tile_dims.push_back(TileKind::kReplicated);
  }
  if (replicas > 1) {
    tiles.dims.push_back(replicas);
    tiles.replicate_on_last_tile_dim = unreduced == 1;
  }
  if (tiles.dims.empty()) return {};  // a scalar on one device
  tiles.transpose_perm = places_in_mesh(mesh, order);
  tiles.reshape_dims.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    tiles.reshape_dims[static_cast<std::size_t>(tiles.transpose_perm[i])] =
        mesh.axis_size(order[i]);
  return tiles;
}

TileAssignment tile_assignment(const Sharding& sharding) {
  return axis_tile_assignment(sharding).shortest();
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

std::string TileAssignment::to_string() const {
  if (kind == TileKind::kMaximal) return cat("{maximal device=", join(devices, ","), '}');
  if (kind != TileKind::kTiled) return cat('{', meshard::to_string(kind), '}');
  std::string out = cat("{devices=[", join(dims, ","), ']');
  if (is_iota()) {
    append(out, cat("<=[", join(reshape_dims, ","), ']'));
    bool identity = true;
    for (std::size_t i = 0; i < transpose_perm.size(); ++i)
      identity = identity && transpose_perm[i] == static_cast<std::int64_t>(i);
    if (!identity) append(out, cat("T(", join(transpose_perm, ","), ')'));
  } else {
    append(out, join(devices, ","));
  }
  if (replicate_on_last_tile_dim) append(out, " last_tile_dim_replicate");
  if (!last_tile_dims.empty()) {
    append(out, " last_tile_dims={");
    for (std::size_t i = 0; i < last_tile_dims.size(); ++i)
      append(out, cat(i == 0 ? "" : ", ", meshard::to_string(last_tile_dims[i])));
    append(out, "}");
  }
  return out + "}";
}

TileAssignment TileAssignment::read(TextScanner& scanner) {
  TileAssignment tiles;
  scanner.expect("{");
  if (std::optional<TileKind> kind = read_word(scanner)) {
    tiles.kind = *kind;
  } else if (scanner.accept("maximal")) {
    scanner.expect("device");
    scanner.expect("=");
    tiles.kind = TileKind::kMaximal;
    tiles.devices = {scanner.integer()};
  } else {
    scanner.expect("devices");
    scanner.expect("=");
    tiles.kind = TileKind::kTiled;
    read_devices(scanner, tiles);
    read_subgroups(scanner, tiles);
  }
  scanner.expect("}");
  tiles.validate().value();
  return tiles;
}

Result<TileAssignment> TileAssignment::parse(std::string_view text) {
  return parse_whole("tile assignment", text, read);
}

}  // namespace meshard
