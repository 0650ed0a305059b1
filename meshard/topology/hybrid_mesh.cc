#include "meshard/topology/hybrid_mesh.h"

#include <algorithm>
#include <tuple>

#include "meshard/base/error.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

using Order = std::vector<std::size_t>;

// Orders of the places on a board. Chips are numbered x first, then y.
const Order& ring_of_2x2_with_two_cores() {
  static const Order order = {0, 1, 2, 3, 6, 7, 4, 5};
  return order;
}
const Order& ring_of_2x2() {
  static const Order order = {0, 1, 3, 2};
  return order;
}
const Order& rows_of_2x4() {
  static const Order order = {0, 1, 2, 3, 7, 6, 5, 4};
  return order;
}
const Order& ring_of_4x4() {
  static const Order order = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};
  return order;
}

using BoardDevices = std::span<const DeviceAttributes>;

// The device ids board by board, each board in the given order.
std::vector<std::int64_t> board_by_board(BoardDevices devices, const Order& order) {
  std::vector<std::int64_t> ids;
  for (std::size_t first = 0; first < devices.size(); first += order.size())
    for (std::size_t place : order) ids.push_back(devices[first + place].id);
  return ids;
}

std::vector<std::int64_t> as_listed(BoardDevices devices) { return board_by_board(devices, {0}); }

std::optional<std::vector<std::int64_t>> two_core_order(BoardDevices devices, IntView shape) {
  const Order& ring = ring_of_2x2_with_two_cores();
  if (devices.size() == ring.size() || (!shape.empty() && shape.back() == 8))
    return board_by_board(devices, ring);
  return as_listed(devices);
}

std::optional<std::vector<std::int64_t>> flat_chip_order(BoardDevices devices, IntView shape) {
  constexpr std::size_t kLargestBoard = 4 * 4;
  if (devices.size() > kLargestBoard) return std::nullopt;
  IntVector end;  // a board that does not start at the origin has no special order
  for (CoordinateBox box = box_of(devices); end.size() < box.low.size();)
    end.push_back(box.low[end.size()] + box.size[end.size()]);
  auto board = [&](std::int64_t x, std::int64_t y) {
    return end == IntVector{x, y, 1} && std::ssize(devices) == x * y;
  };
  bool one_axis = std::ranges::find(shape, std::ssize(devices)) != shape.end();
  const Order* order = board(2, 2)               ? &ring_of_2x2()
                       : board(2, 4)             ? &rows_of_2x4()
                       : board(4, 4) && one_axis ? &ring_of_4x4()
                                                 : nullptr;
  if (!order) return std::nullopt;
  std::vector<DeviceAttributes> sorted(devices.begin(), devices.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return std::lexicographical_compare(a.coords.rbegin(), a.coords.rend(), b.coords.rbegin(),
                                        b.coords.rend());
  });
  return board_by_board(sorted, *order);
}

using Chosen = InlineVector<std::size_t, 4>;  // directions, ascending

std::int64_t product_of(IntView sizes) { return IntTuple::flat(sizes).product(); }

TorusAssignment nothing_taken(std::size_t directions, std::size_t axes) {
  return {std::vector<IntVector>(directions, IntVector(axes, 1))};
}

// Finds the first combination of `count` free directions, from `first` on, whose sizes multiply to
// `size`.
bool choose_whole(IntView physical, const std::vector<bool>& free, std::int64_t size,
                  std::size_t count, std::size_t first, Chosen& chosen) {
  if (count == 0) return size == 1;
  for (std::size_t k = first; k < physical.size(); ++k) {
    if (!free[k] || size % physical[k] != 0) continue;
    chosen.push_back(k);
    if (choose_whole(physical, free, size / physical[k], count - 1, k + 1, chosen)) return true;
    chosen.pop_back();
  }
  return false;
}

std::optional<TorusAssignment> assign_whole(IntView physical, IntView logical, std::size_t most) {
  TorusAssignment assignment = nothing_taken(physical.size(), logical.size());
  std::vector<bool> free(physical.size(), true);
  for (std::size_t axis = logical.size(); axis-- > 0;) {
    Chosen chosen;
    bool found = false;
    for (std::size_t count = std::min(most, physical.size()); count > 0 && !found; --count)
      found = choose_whole(physical, free, logical[axis], count, 0, chosen);
    if (!found && logical[axis] > 1) return std::nullopt;
    for (std::size_t k : chosen) {
      assignment.taken[k][axis] = physical[k];
      free[k] = false;
    }
  }
  return assignment;
}

// Searches for the best shares of the directions for one axis, among all that multiply to its size.
class SplitChoice {
 public:
  SplitChoice(IntView physical, const TorusAssignment& assignment) : physical_(physical) {
    for (const IntVector& taken : assignment.taken) used_.push_back(product_of(taken));
  }

  IntVector best(std::int64_t size) {
    IntVector free;
    for (std::size_t k = 0; k < physical_.size(); ++k) free.push_back(physical_[k] / used_[k]);
    for_each_share(free, size, [this](const IntVector& parts) { consider(parts); });
    return best_;
  }

 private:
  using Merit = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

  // Parts come in ascending order, so the later of two equals has more of the first directions.
  void consider(const IntVector& parts) {
    std::int64_t whole = 1, wholes = 0, shared = 1;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k] == physical_[k]) whole *= parts[k];
      if (parts[k] == physical_[k] && parts[k] > 1) ++wholes;
      if (used_[k] > 1) shared *= parts[k];
    }
    if (Merit merit(whole, wholes, shared); best_.empty() || merit >= merit_) {
      merit_ = merit;
      best_ = parts;
    }
  }

  IntView physical_;
  IntVector used_;
  Merit merit_;
  IntVector best_;
};

TorusAssignment assign_split(IntView physical, IntView logical) {
  TorusAssignment assignment = nothing_taken(physical.size(), logical.size());
  for (std::size_t axis = logical.size(); axis-- > 0;) {
    IntVector parts = SplitChoice(physical, assignment).best(logical[axis]);
    // A share always exists: the sizes of the axes multiply to the number of places.
    internal_check(!parts.empty() || physical.empty(), "no share of a torus is left for an axis");
    for (std::size_t k = 0; k < parts.size(); ++k) assignment.taken[k][axis] = parts[k];
  }
  return assignment;
}

using Devices = std::vector<DeviceAttributes>;

std::int64_t places_in(IntView shape) { return IntTuple::flat(shape).product(); }

// True for grids with several devices per chip that JAX and torch_xla do not support.
bool cores_are_an_extra(const PhysicalGrid& grid, const Devices& devices) {
  const TpuGeneration* tpu = tpu_generation_of(devices.front().kind);
  return grid.has_cores && !(tpu && tpu->has_hybrid_cores);
}

std::vector<std::int64_t> ids_of(const Devices& devices) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : devices) ids.push_back(device.id);
  return ids;
}

// Splits the list of devices into `count` granules, or into one if `count` does not divide it.
std::vector<Devices> parts_of_list(const Topology& topology, std::int64_t count) {
  const Devices& all = topology.devices();
  if (count < 1 || std::ssize(all) % count != 0) return {all};
  std::vector<Devices> parts;
  auto size = std::ssize(all) / count;
  for (std::int64_t k = 0; k < count; ++k)
    parts.emplace_back(all.begin() + k * size, all.begin() + (k + 1) * size);
  return parts;
}

// The ids of a granule's devices in the order of a mesh of this shape.
std::vector<std::int64_t> ids_in_granule(const Devices& devices, IntView shape,
                                         const HybridOptions& options, SourceLocation where) {
  if (places_in(shape) != std::ssize(devices))
    throw_invalid(where, "[topology] a mesh of ", join(shape, " x "), " needs ", places_in(shape),
                  " devices, but there are ", devices.size());
  bool alone = devices.size() == 1;  // needs no place
  if ((options.allow_no_coords || alone) && devices.front().coords.empty()) return ids_of(devices);
  if (auto ids = board_order(devices, shape)) return *std::move(ids);
  PhysicalGrid grid = physical_grid(devices, where);
  bool extra = cores_are_an_extra(grid, devices);
  if (options.contiguous_processes && extra)
    throw Error(ErrorCode::kFailedPrecondition,
                "[topology] contiguous processes need chips with one device each", where);
  if (options.contiguous_processes) grid = contiguous_grid(grid, shape, where);
  // Allowing only whole directions would reject most shapes on such grids.
  AxisSplit split = extra ? AxisSplit::kWhereNeeded : options.split;
  TorusAssignment assignment =
      assign_torus(grid.shape, shape, split, kTorusDirections + (grid.has_cores ? 1 : 0), where);
  return in_mesh_order(grid.ids, assignment, grid.shape);
}

void check_outer(const Topology& topology, const std::vector<Devices>& granules, IntView inner,
                 IntView outer, const HybridOptions& options, SourceLocation where) {
  bool by_slice = options.granule == Granule::kSlice;
  std::string_view what = by_slice ? "slices" : "processes";
  std::int64_t count = std::ssize(granules);
  if (inner.size() != outer.size())
    throw_invalid(where, "[topology] ", inner.size(), " inner sizes (", join(inner, ", "), "), ",
                  outer.size(), " outer sizes (", join(outer, ", "),
                  "): give the same number of both");
  if (places_in(outer) == count) return;
  if (by_slice && count == 1 && !topology.devices().front().slice_index)
    throw_invalid(where, "[topology] the outer shape ", join(outer, " x "),
                  " needs several slices, but the devices have no slice index");
  if (places_in(outer) == 1)
    throw_invalid(where, "[topology] there are ", count, ' ', what,
                  ", and no outer shape divides the mesh among them");
  throw_invalid(where, "[topology] the outer shape ", join(outer, " x "), " needs ",
                places_in(outer), ' ', what, ", but there are ", count);
}

}  // namespace

std::optional<std::vector<std::int64_t>> board_order(BoardDevices devices, IntView shape) {
  const TpuGeneration* tpu = tpu_generation_of(devices.front().kind);
  if (!tpu) return std::nullopt;
  switch (tpu->board_order) {
    case TpuBoardOrder::kAsListed: break;
    case TpuBoardOrder::kRingOfEight: return two_core_order(devices, shape);
    case TpuBoardOrder::kRingsOfTwoBoards:
      if (devices.size() == 8 || devices.size() == 16)
        return board_by_board(devices, ring_of_2x2_with_two_cores());
      break;
    case TpuBoardOrder::kFlat:
      if (!devices.front().coords.empty()) return flat_chip_order(devices, shape);
      break;
  }
  return std::nullopt;
}

TorusAssignment assign_torus(IntView physical, IntView logical, AxisSplit split,
                             std::size_t most_whole, SourceLocation where) {
  for (std::int64_t size : logical)
    if (size < 1) throw_invalid(where, "[torus] an axis has size ", size);
  for (std::int64_t size : physical)
    if (size < 1) throw_invalid(where, "[torus] a direction of the grid has size ", size);
  std::int64_t places = product_of(physical), positions = product_of(logical);
  std::optional<TorusAssignment> whole = assign_whole(physical, logical, most_whole);
  if (whole && places == positions) return *std::move(whole);
  if (whole)
    throw_invalid(where, "[torus] a mesh of ", join(logical, " x "), " leaves a part of the grid ",
                  join(physical, " x "), " without an axis");
  if (split == AxisSplit::kNever)
    throw Error(
        ErrorCode::kUnimplemented,
        cat("[torus] no combination of whole directions of the grid ", join(physical, " x "),
            " makes the axes of ", join(logical, " x "), "; allow AxisSplit::kWhereNeeded"),
        where);
  if (places != positions)
    throw_invalid(where, "[torus] a mesh of ", join(logical, " x "), " needs ", positions,
                  " devices, but the grid ", join(physical, " x "), " has ", places);
  return assign_split(physical, logical);
}

Layout TorusAssignment::layout(IntView physical) const {
  std::size_t axes = taken.empty() ? 0 : taken.front().size();
  IntVector strides(taken.size());
  for (std::int64_t k = std::ssize(taken) - 1, stride = 1; k >= 0; --k) {
    strides[static_cast<std::size_t>(k)] = stride;
    stride *= physical[static_cast<std::size_t>(k)];
  }
  std::vector<IntTuple> shape(axes), stride(axes);
  for (std::size_t axis = axes; axis-- > 0;) {
    IntVector sizes, steps;
    for (std::size_t k = 0; k < taken.size(); ++k) {
      sizes.push_back(taken[k][axis]);
      steps.push_back(strides[k]);
      strides[k] *= taken[k][axis];
    }
    shape[axis] = IntTuple::flat(sizes);
    stride[axis] = IntTuple::flat(steps);
  }
  return Layout(IntTuple(shape), IntTuple(stride));
}

std::vector<std::int64_t> in_mesh_order(const std::vector<std::int64_t>& ids,
                                        const TorusAssignment& assignment, IntView physical) {
  std::vector<std::int64_t> places = {0};
  Layout layout = assignment.layout(physical);
  std::span<const std::int64_t> sizes = layout.shape().leaves(), steps = layout.stride().leaves();
  for (std::size_t mode = 0; mode < sizes.size(); ++mode) {
    if (sizes[mode] == 1) continue;
    std::vector<std::int64_t> next;
    next.reserve(places.size() * static_cast<std::size_t>(sizes[mode]));
    for (std::int64_t place : places)
      for (std::int64_t i = 0; i < sizes[mode]; ++i) next.push_back(place + i * steps[mode]);
    places = std::move(next);
  }
  for (std::int64_t& place : places) place = ids[static_cast<std::size_t>(place)];
  return places;
}

Mesh hybrid_mesh(const Topology& topology, IntView inner, IntView outer, const MaybeNames& names,
                 const HybridOptions& options, SourceLocation where) {
  std::vector<Devices> granules = granules_of(topology, options.granule);
  IntVector ones(inner.size(), 1);
  IntView all_outer = outer.empty() ? IntView(ones) : outer;
  // Virtual devices all have the same slice and process.
  if (options.allow_no_coords && !topology.has_coords() && granules.size() == 1)
    granules = parts_of_list(topology, places_in(all_outer));
  check_outer(topology, granules, inner, all_outer, options, where);
  IntVector sizes;
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    sizes.push_back(inner[axis] * all_outer[axis]);
  std::vector<MeshAxis> axes = mesh_axes(sizes, names, where);
  check_mesh_axes(axes, where);
  std::vector<std::vector<std::int64_t>> meshes;
  for (const Devices& devices : granules)
    meshes.push_back(ids_in_granule(devices, inner, options, where));
  return Mesh(std::move(axes), join_granules(meshes, inner, all_outer), where);
}

Mesh torus_mesh(const Topology& topology, IntView shape, const MaybeNames& names,
                const HybridOptions& options, SourceLocation where) {
  std::vector<MeshAxis> axes = mesh_axes(shape, names, where);
  check_mesh_axes(axes, where);
  return Mesh(std::move(axes), ids_in_granule(topology.devices(), shape, options, where), where);
}

}  // namespace meshard
