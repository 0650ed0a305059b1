#include "meshard/topology/ring_mesh.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <unordered_set>

#include "meshard/topology/ring_placement.h"

namespace meshard {
namespace {

constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();

// The locations of a mesh's devices, by position.
struct Places {
  std::vector<std::int64_t> slices;  // -1: unknown
  bool one_slice = true;
  // The coordinates in each direction of the grid.
  std::vector<std::vector<std::uint32_t>> directions;
};

[[noreturn]] void throw_unknown_device(const RankMap& ids, const Mesh& mesh,
                                       const Topology& topology, SourceLocation where) {
  std::unordered_set<std::int64_t> known;
  for (const DeviceAttributes& device : topology.devices()) known.insert(device.id);
  std::int64_t position = 0;
  while (known.contains(ids[position])) ++position;
  throw_invalid(where, "[topology] device ", ids[position], " of ", mesh,
                " is not in the topology");
}

// Reads the devices in the order of the topology: their attributes are far apart in memory.
Places places_of(const Mesh& mesh, const Topology& topology, SourceLocation where) {
  const RankMap ids = mesh.as_root(where).device_ids().rank_map();
  const std::size_t size = static_cast<std::size_t>(ids.size());
  Places places{std::vector<std::int64_t>(size), true, {}};
  places.directions.assign(topology.extent().size(), std::vector<std::uint32_t>(size));
  std::size_t found = 0;
  for (const DeviceAttributes& device : topology.devices()) {
    std::optional<std::int64_t> at = ids.find(device.id);
    if (!at) continue;
    const std::size_t position = static_cast<std::size_t>(*at);
    ++found;
    places.slices[position] = device.slice_index.value_or(-1);
    const std::int64_t* coordinates = device.coords.data();
    for (std::size_t k = 0; k < places.directions.size(); ++k)
      places.directions[k][position] = static_cast<std::uint32_t>(coordinates[k]);
  }
  if (found < size) throw_unknown_device(ids, mesh, topology, where);
  places.one_slice = std::ranges::all_of(
      places.slices, [&](std::int64_t slice) { return slice == places.slices.front(); });
  return places;
}

// The size of each direction that closes; of others a size that no difference reaches.
std::vector<std::int64_t> rings_of(const Topology& topology) {
  std::vector<std::int64_t> rings(topology.extent().size(), kOpen);
  for (std::size_t k = 0; k < rings.size(); ++k)
    if (topology.wrap() && (*topology.wrap())[k]) rings[k] = topology.extent()[k];
  return rings;
}

// Counts the steps along one axis.
class StepCount {
 public:
  StepCount(const Places& places, const std::vector<std::int64_t>& rings)
      : places_(places), rings_(rings) {}

  // The steps from `count` positions, `first` and those after it, to the ones `distance` later.
  void add(std::int64_t first, std::int64_t count, std::int64_t distance) {
    for (std::int64_t end = first + count; first < end; first += kBlock)
      add_block(first, std::min(end - first, kBlock), distance);
  }

  AxisHops total() const {
    AxisHops axis = axis_;
    if (axis.steps > 0) axis.mean = static_cast<double>(sum_) / static_cast<double>(axis.steps);
    return axis;
  }

 private:
  static constexpr std::int64_t kBlock = 256;

  // One direction after the other, so that the inner loop is the same for all steps.
  void add_block(std::int64_t first, std::int64_t count, std::int64_t distance) {
    std::array<std::int64_t, kBlock> hops{};
    for (std::size_t k = 0; k < rings_.size(); ++k) {
      const std::uint32_t* from = places_.directions[k].data() + first;
      const std::int64_t ring = rings_[k];
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t apart = std::abs(std::int64_t{from[i]} - std::int64_t{from[i + distance]});
        hops[static_cast<std::size_t>(i)] += std::min(apart, ring - apart);
      }
    }
    const std::int64_t* slices = places_.slices.data() + first;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!places_.one_slice && slices[i] != slices[i + distance]) {
        ++axis_.between_slices;
        continue;
      }
      ++axis_.steps;
      sum_ += hops[static_cast<std::size_t>(i)];
      axis_.worst = std::max(axis_.worst, hops[static_cast<std::size_t>(i)]);
    }
  }

  const Places& places_;
  const std::vector<std::int64_t>& rings_;
  AxisHops axis_;
  std::int64_t sum_ = 0;
};

AxisHops along(const Places& places, std::int64_t size, std::int64_t stride,
               const std::vector<std::int64_t>& rings) {
  StepCount count(places, rings);
  const std::int64_t last = (size - 1) * stride;
  for (std::int64_t group = 0; group < std::ssize(places.slices); group += size * stride) {
    count.add(group, last, stride);
    if (size > 2) count.add(group + last, stride, -last);  // two devices have one step
  }
  return count.total();
}

// At most three decimals.
std::string short_number(double value) { return cat(std::round(value * 1000) / 1000); }

using Slice = std::span<const DeviceAttributes>;
using Grid = std::vector<RingDirection>;

PhysicalGrid line_of(const Slice& slice) {
  std::vector<DeviceAttributes> devices(slice.begin(), slice.end());
  std::ranges::sort(devices, [](const auto& a, const auto& b) {
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
  return std::ranges::all_of(devices, [&](const DeviceAttributes& device) {
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

MeshHops mesh_hops(const Mesh& mesh, const Topology& topology, SourceLocation where) {
  if (!topology.has_coords())
    throw_invalid(where, "[topology] the devices have no coordinates, so hops cannot be counted");
  Places places = places_of(mesh, topology, where);
  std::vector<std::int64_t> rings = rings_of(topology);
  MeshHops hops{{}, topology.wrap().has_value()};
  std::int64_t stride = mesh.size();
  for (std::int64_t size : mesh.shape()) {
    stride /= size;
    hops.axes.push_back(along(places, size, stride, rings));
  }
  return hops;
}

double MeshHops::worst_mean() const {
  double worst = 0;
  for (const AxisHops& axis : axes) worst = std::max(worst, axis.mean);
  return worst;
}

double MeshHops::mean() const {
  double sum = 0, steps = 0;
  for (const AxisHops& axis : axes) {
    sum += axis.mean * static_cast<double>(axis.steps);
    steps += static_cast<double>(axis.steps);
  }
  return steps == 0 ? 0 : sum / steps;
}

std::string MeshHops::to_string(const Mesh& mesh) const {
  std::string out;
  for (std::size_t i = 0; i < axes.size(); ++i)
    append(out, i == 0 ? "" : ", ", mesh.axes()[i].name, ' ', axes[i]);
  return out;
}

std::string MeshHops::to_string() const { return join(axes, ", "); }

std::string AxisHops::to_string() const {
  std::string out = cat(short_number(mean), " (worst ", worst);
  if (between_slices > 0) append(out, ", ", between_slices, " between slices");
  return out + ')';
}

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
