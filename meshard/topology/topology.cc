#include "meshard/topology/topology.h"

#include <algorithm>
#include <map>

#include "meshard/base/error.h"
#include "meshard/topology/physical_grid.h"
#include "meshard/topology/tpu_generation.h"

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
  std::sort(ids.begin(), ids.end());
  if (auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
    throw_invalid(where, "[topology] device ", *twice, " is listed twice");
}

}  // namespace

std::string DeviceAttributes::to_string() const {
  std::string out = cat(id);
  if (!coords.empty()) append(out, cat(" at ", IntTuple::flat(coords)));
  if (core_on_chip != 0) append(out, cat(" core ", core_on_chip));
  if (slice_index) append(out, cat(" of slice ", *slice_index));
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
  if (!kind().empty()) append(out, cat(" of ", kind()));
  if (!has_coords()) return out;
  const IntVector& sizes = extent();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    append(out, cat(k == 0 ? ", " : "x", sizes[k], wrap_ && (*wrap_)[k] ? "*" : ""));
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

}  // namespace meshard
