#include "meshard/topology/ring_mesh.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "meshard/topology/physical_grid.h"
#include "meshard/topology/ring_placement.h"

namespace meshard {
namespace {

using Slice = std::span<const DeviceAttributes>;
using Grid = std::vector<RingDirection>;

PhysicalGrid line_of(const Slice& slice) {
  std::vector<DeviceAttributes> devices(slice.begin(), slice.end());
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return std::tie(a.process_index, a.coords, a.id) < std::tie(b.process_index, b.coords, b.id);
  });
  PhysicalGrid line{{std::ssize(devices)}, {}, false};
  for (const DeviceAttributes& device : devices) line.ids.push_back(device.id);
  return line;
}

PhysicalGrid grid_or_line(const Slice& devices) {
  try {
    return physical_grid(devices);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kFailedPrecondition) throw;
    return line_of(devices);
  }
}

Grid directions_of(const PhysicalGrid& grid, const Topology& topology) {
  Grid directions;
  std::size_t chips = grid.shape.size() - (grid.has_cores ? 1 : 0);
  bool wraps = topology.wrap() && topology.wrap()->size() == chips;
  for (std::size_t k = 0; k < grid.shape.size(); ++k)
    directions.push_back({grid.shape[k], k < chips && wraps && (*topology.wrap())[k], k < chips});
  return directions;
}

// The place when the second half of a mirrored direction is counted backward.
std::int64_t mirrored_place(std::int64_t place, std::int64_t stride, std::int64_t size) {
  std::int64_t index = place / stride % size;
  return index < size / 2 ? place : place + stride * (size + size / 2 - 1 - 2 * index);
}

// The device ids of a grid in the mesh order that a placement gives.
std::vector<std::int64_t> placed(const PhysicalGrid& grid, const Grid& directions,
                                 const RingPlacement& placement, const std::vector<TourEnd>& ends) {
  std::vector<std::int64_t> places = {0};
  std::vector<TourBox> boxes = axis_boxes(placement, directions, ends.size());
  for (std::size_t axis = 0; axis < ends.size(); ++axis) {
    std::vector<std::int64_t> tour = RingTour(boxes[axis], ends[axis]).places(), next;
    next.reserve(places.size() * tour.size());
    for (std::int64_t place : places)
      for (std::int64_t step : tour) next.push_back(place + step);
    places = std::move(next);
  }
  std::int64_t stride = 1;
  for (std::size_t k = directions.size(); k-- > 0; stride *= directions[k].size)
    if (placement.is_mirrored(k, directions))
      for (std::int64_t& place : places) place = mirrored_place(place, stride, directions[k].size);
  for (std::int64_t& place : places) place = grid.ids[static_cast<std::size_t>(place)];
  return places;
}

// The default outer shape: the first axes take as many slices as they can.
IntVector chosen_outer(IntView shape, std::int64_t slices) {
  IntVector outer;
  for (std::int64_t size : shape) {
    outer.push_back(std::gcd(size, slices));
    slices /= outer.back();
  }
  return outer;
}

bool is_one_slice(const Topology& topology) {
  const std::vector<DeviceAttributes>& devices = topology.devices();
  return std::all_of(devices.begin(), devices.end(), [&](const DeviceAttributes& device) {
    return device.slice_index == devices.front().slice_index;
  });
}

void check_slices(const std::vector<Slice>& slices, SourceLocation where) {
  for (const Slice& slice : slices)
    if (slice.size() != slices[0].size())
      throw_invalid(where, "[topology] all slices must have the same number of devices, not ",
                    slices[0].size(), " and ", slice.size());
}

IntVector inner_shape(IntView shape, IntView outer, std::size_t slices, SourceLocation where) {
  if (outer.size() != shape.size())
    throw_invalid(where, "[topology] ", outer.size(), " outer sizes (", join(outer, ", "), ") for ",
                  shape.size(), " axes");
  IntVector inner;
  std::int64_t places = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (outer[axis] < 1 || shape[axis] % outer[axis] != 0)
      throw_invalid(where, "[topology] the outer size ", outer[axis], " of axis ", axis,
                    " does not divide ", shape[axis]);
    inner.push_back(shape[axis] / outer[axis]);
    places *= outer[axis];
  }
  if (places != static_cast<std::int64_t>(slices))
    throw_invalid(where, "[topology] the outer shape ", join(outer, " x "), " needs ", places,
                  " slices, but there are ", slices);
  return inner;
}

}  // namespace

RingMesh ring_mesh(const Topology& topology, IntView shape, const MaybeNames& names, IntView outer,
                   SourceLocation where) {
  std::vector<MeshAxis> axes = mesh_axes(shape, names, where);
  check_mesh_axes(axes, where);
  if (std::int64_t places = IntTuple::flat(shape).product(); places != topology.size())
    throw_invalid(where, "[topology] a mesh of ", join(shape, " x "), " needs ", places,
                  " devices, but there are ", topology.size());
  std::vector<std::vector<DeviceAttributes>> several;
  if (!is_one_slice(topology)) several = granules_of(topology, Granule::kSlice);
  std::vector<Slice> slices(several.begin(), several.end());
  if (several.empty()) slices.push_back(topology.devices());
  check_slices(slices, where);
  IntVector chosen = chosen_outer(shape, std::ssize(slices));
  IntView over_slices = outer.empty() ? IntView(chosen) : outer;
  IntVector inner = inner_shape(shape, over_slices, slices.size(), where);
  std::vector<TourEnd> ends;  // an axis over several slices returns in another slice
  for (std::int64_t count : over_slices)
    ends.push_back(count == 1 ? TourEnd::kReturns : TourEnd::kAnywhere);
  std::vector<std::vector<std::int64_t>> meshes;
  std::optional<RingPlacement> placement;
  IntVector placed_for;
  for (const Slice& slice : slices) {
    PhysicalGrid grid = grid_or_line(slice);
    Grid directions = directions_of(grid, topology);
    if (!placement || placed_for != grid.shape) placement = best_placement(directions, inner, ends);
    placed_for = grid.shape;
    meshes.push_back(placed(grid, directions, *placement, ends));
  }
  Mesh mesh(std::move(axes), join_granules(meshes, inner, over_slices), where);
  if (!topology.has_coords()) return {std::move(mesh), std::nullopt};
  MeshHops hops = mesh_hops(mesh, topology, where);
  return {std::move(mesh), std::move(hops)};
}

}  // namespace meshard
