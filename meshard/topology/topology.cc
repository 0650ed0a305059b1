#include "meshard/topology/topology.h"

#include <algorithm>
#include <map>

#include "meshard/base/error.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

// Bounds the coordinates that plugins report, so that arithmetic on them cannot overflow.
constexpr std::int64_t kLargestCoordinate = std::int64_t{1} << 31;

void check_device(const DeviceAttributes& device, std::size_t coordinates, SourceLocation where) {
  if (device.coords.size() != coordinates)
    throw_invalid(where, "[topology] device ", device, " has ", device.coords.size(),
                  " coordinates, but the first device has ", coordinates);
  bool negative = device.id < 0 || device.process_index < 0 || device.core_on_chip < 0 ||
                  device.slice_index.value_or(0) < 0;
  if (negative) throw_invalid(where, "[topology] device ", device, " has a negative index");
  for (std::int64_t coordinate : device.coords)
    if (coordinate < 0 || coordinate > kLargestCoordinate)
      throw_invalid(where, "[topology] device ", device, " has a coordinate outside 0 to ",
                    kLargestCoordinate);
  if (device.core_on_chip > kLargestCoordinate)
    throw_invalid(where, "[topology] device ", device, " has a core outside 0 to ",
                  kLargestCoordinate);
}

void check_devices(const std::vector<DeviceAttributes>& devices, SourceLocation where) {
  if (devices.empty()) throw_invalid(where, "[topology] the list of devices is empty");
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : devices) {
    check_device(device, devices.front().coords.size(), where);
    ids.push_back(device.id);
  }
  std::ranges::sort(ids);
  if (auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    throw_invalid(where, "[topology] device ", *twice, " is listed twice");
}

constexpr std::int64_t kEmptyPlace = -1;

std::int64_t place_in(const PhysicalGrid& grid, const IntVector& low,
                      const DeviceAttributes& device) {
  std::int64_t place = 0;
  for (std::size_t k = 0; k < low.size(); ++k)
    place = place * grid.shape[k] + device.coords[k] - low[k];
  return grid.has_cores ? place * grid.shape.back() + device.core_on_chip : place;
}

[[noreturn]] void grid_error(SourceLocation where, std::string what) {
  throw Error(ErrorCode::kFailedPrecondition, "[topology] " + std::move(what), where);
}

// A grid, a mesh shape without sizes of 1, and the order of directions to use for the two.
struct KnownOrder {
  IntVector grid, shape;
  std::size_t order[3];
};

const std::vector<KnownOrder>& known_orders() {
  static const std::vector<KnownOrder> orders = {
      {{2, 2, 1}, {2, 2}, {0, 1, 2}},  {{2, 2, 4}, {4, 4}, {0, 1, 2}},
      {{4, 4, 4}, {16, 4}, {0, 2, 1}}, {{4, 8, 8}, {64, 4}, {0, 2, 1}},
      {{4, 8, 8}, {4, 64}, {0, 2, 1}}, {{8, 8, 8}, {64, 8}, {0, 2, 1}}};
  return orders;
}

PhysicalGrid reordered(const PhysicalGrid& grid, const std::size_t (&order)[3]) {
  IntVector strides = {grid.shape[1] * grid.shape[2], grid.shape[2], 1};
  PhysicalGrid turned;
  for (std::size_t k : order) turned.shape.push_back(grid.shape[k]);
  for (std::int64_t i = 0; i < turned.shape[0]; ++i)
    for (std::int64_t j = 0; j < turned.shape[1]; ++j)
      for (std::int64_t k = 0; k < turned.shape[2]; ++k)
        turned.ids.push_back(grid.ids[static_cast<std::size_t>(
            i * strides[order[0]] + j * strides[order[1]] + k * strides[order[2]])]);
  return turned;
}

}  // namespace

std::string DeviceAttributes::to_string() const {
  std::string out = cat(id);
  if (!coords.empty()) append(out, " at ", IntTuple::flat(coords));
  if (core_on_chip != 0) append(out, " core ", core_on_chip);
  if (slice_index) append(out, " of slice ", *slice_index);
  return cat(out, ", process ", process_index);
}

std::optional<Topology::Wrap> closed_directions(std::string_view kind, const IntVector& extent) {
  const TpuGeneration* tpu = tpu_generation_of(kind);
  if (!tpu || tpu->closing_multiple == 0) return std::nullopt;
  Topology::Wrap wrap;
  for (std::int64_t size : extent) wrap.push_back(size % tpu->closing_multiple == 0);
  return wrap;
}

Topology::Topology(std::vector<DeviceAttributes> devices, SourceLocation where)
    : devices_(std::move(devices)) {
  check_devices(devices_, where);
  extent_ = box_of(devices_).size;
  wrap_ = closed_directions(kind(), extent_);
}

Topology::Topology(std::vector<DeviceAttributes> devices, Wrap wrap, SourceLocation where)
    : devices_(std::move(devices)), wrap_(std::move(wrap)) {
  check_devices(devices_, where);
  extent_ = box_of(devices_).size;
  if (wrap_->size() != devices_.front().coords.size())
    throw_invalid(where, "[topology] wrap has ", wrap_->size(), " values, but each device has ",
                  devices_.front().coords.size(), " coordinates");
}

std::vector<std::vector<DeviceAttributes>> granules_of(const Topology& topology, Granule granule) {
  auto index_of = [granule](const DeviceAttributes& device) {
    return granule == Granule::kProcess ? device.process_index : device.slice_index.value_or(-1);
  };
  std::map<std::int64_t, std::size_t> sizes;
  for (const DeviceAttributes& device : topology.devices()) ++sizes[index_of(device)];
  std::vector<std::vector<DeviceAttributes>> granules;
  std::map<std::int64_t, std::size_t> place;
  for (auto [index, size] : sizes) {
    place[index] = granules.size();
    granules.emplace_back().reserve(size);
  }
  for (const DeviceAttributes& device : topology.devices())
    granules[place[index_of(device)]].push_back(device);
  return granules;
}

std::string Topology::to_string() const {
  std::string out = cat(size(), size() == 1 ? " device" : " devices");
  if (!kind().empty()) append(out, " of ", kind());
  if (!has_coords()) return out;
  const IntVector& sizes = extent();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    append(out, k == 0 ? ", " : "x", sizes[k], wrap_ && (*wrap_)[k] ? "*" : "");
  return out + " chips";
}

std::string_view to_string(Granule granule) {
  return granule == Granule::kSlice ? "slice" : "process";
}

std::vector<std::int64_t> join_granules(const std::vector<std::vector<std::int64_t>>& meshes,
                                        IntView inner, IntView outer) {
  // Modes of (granule, position in granule), axis by axis.
  struct Mode {
    std::int64_t size, granule_step, position_step;
  };
  std::vector<Mode> modes(2 * inner.size());
  std::int64_t granule_step = 1, position_step = 1;
  for (std::size_t axis = inner.size(); axis-- > 0;) {
    modes[2 * axis] = {outer[axis], granule_step, 0};
    modes[2 * axis + 1] = {inner[axis], 0, position_step};
    granule_step *= outer[axis];
    position_step *= inner[axis];
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> places = {{0, 0}};
  for (const Mode& mode : modes) {
    if (mode.size == 1) continue;
    std::vector<std::pair<std::int64_t, std::int64_t>> next;
    next.reserve(places.size() * static_cast<std::size_t>(mode.size));
    for (auto [granule, position] : places)
      for (std::int64_t i = 0; i < mode.size; ++i)
        next.emplace_back(granule + i * mode.granule_step, position + i * mode.position_step);
    places = std::move(next);
  }
  std::vector<std::int64_t> ids;
  ids.reserve(places.size());
  for (auto [granule, position] : places)
    ids.push_back(meshes[static_cast<std::size_t>(granule)][static_cast<std::size_t>(position)]);
  return ids;
}

CoordinateBox box_of(std::span<const DeviceAttributes> devices) {
  IntVector low = devices.front().coords, high = low;
  for (const DeviceAttributes& device : devices) {
    const std::int64_t* at = device.coords.data();
    for (std::size_t k = 0; k < low.size(); ++k) {
      low[k] = std::min(low[k], at[k]);
      high[k] = std::max(high[k], at[k]);
    }
  }
  for (std::size_t k = 0; k < low.size(); ++k) high[k] += 1 - low[k];
  return {low, high};
}

PhysicalGrid physical_grid(std::span<const DeviceAttributes> devices, SourceLocation where) {
  if (devices.front().coords.empty()) grid_error(where, "the devices have no coordinates");
  CoordinateBox box = box_of(devices);
  PhysicalGrid grid{box.size, {}, false};
  std::int64_t cores = 1, places = 1;
  for (const DeviceAttributes& device : devices) cores = std::max(cores, device.core_on_chip + 1);
  if (cores > 1) {
    grid.has_cores = true;
    grid.shape.push_back(cores);
  }
  for (std::int64_t size : grid.shape)  // stops early: the full product may overflow
    if (places <= std::ssize(devices)) places *= size;
  if (places != std::ssize(devices))
    grid_error(where, cat(devices.size(), " devices do not fill a grid of ",
                          join(grid.shape, " x "), " places"));
  grid.ids.assign(devices.size(), kEmptyPlace);
  for (const DeviceAttributes& device : devices) {
    std::int64_t& id = grid.ids[static_cast<std::size_t>(place_in(grid, box.low, device))];
    if (id != kEmptyPlace)
      grid_error(where,
                 cat("devices ", id, " and ", device.id, " are at the same place of the grid"));
    id = device.id;
  }
  return grid;
}

PhysicalGrid contiguous_grid(const PhysicalGrid& grid, IntView shape, SourceLocation where) {
  IntVector sizes;
  for (std::int64_t size : shape)
    if (size != 1) sizes.push_back(size);
  for (const KnownOrder& known : known_orders())
    if (known.grid == grid.shape && known.shape == sizes) return reordered(grid, known.order);
  throw_invalid(where, "[topology] no order of the grid ", join(grid.shape, " x "),
                " keeps the devices of each process together in a mesh of ", join(shape, " x "));
}

}  // namespace meshard
