#include "meshard/topology/hops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <vector>

namespace meshard {
namespace {

// The locations of devices by position of a mesh: the slice and the coordinates of each.
struct Places {
  std::size_t dimensions;
  std::vector<std::int64_t> slices = {};        // -1: unknown
  std::vector<std::uint32_t> coordinates = {};  // `dimensions` of each device

  const std::uint32_t* of(std::int64_t position) const {
    return coordinates.data() + static_cast<std::size_t>(position) * dimensions;
  }
};

// Finds devices by id: a table where the ids are dense, as they are in practice.
class DevicesById {
 public:
  explicit DevicesById(const std::vector<DeviceAttributes>& devices) {
    std::int64_t largest = 0;
    for (const DeviceAttributes& device : devices) largest = std::max(largest, device.id);
    if (largest < 4 * std::ssize(devices)) table_.resize(static_cast<std::size_t>(largest) + 1);
    for (const DeviceAttributes& device : devices)
      (table_.empty() ? sparse_[device.id] : table_[static_cast<std::size_t>(device.id)]) = &device;
  }
  // Null if there is no such device.
  const DeviceAttributes* find(std::int64_t id) const {
    if (!table_.empty())
      return id >= 0 && id < std::ssize(table_) ? table_[static_cast<std::size_t>(id)] : nullptr;
    auto found = sparse_.find(id);
    return found == sparse_.end() ? nullptr : found->second;
  }

 private:
  std::vector<const DeviceAttributes*> table_;
  std::unordered_map<std::int64_t, const DeviceAttributes*> sparse_;
};

Places places_of(const Mesh& mesh, const Topology& topology, SourceLocation where) {
  DevicesById devices(topology.devices());
  Places places{topology.extent().size()};
  places.slices.reserve(static_cast<std::size_t>(mesh.size()));
  places.coordinates.reserve(static_cast<std::size_t>(mesh.size()) * places.dimensions);
  for (std::int64_t id : mesh.as_root(where).device_ids()) {
    const DeviceAttributes* device = devices.find(id);
    if (!device)
      throw_invalid(where, "[topology] device ", id, " of ", mesh, " is not in the topology");
    places.slices.push_back(device->slice_index.value_or(-1));
    for (std::int64_t coordinate : device->coords)
      places.coordinates.push_back(static_cast<std::uint32_t>(coordinate));
  }
  return places;
}

// The size of each direction that closes, else 0.
std::vector<std::int64_t> rings_of(const Topology& topology) {
  std::vector<std::int64_t> rings(topology.extent().size(), 0);
  for (std::size_t k = 0; k < rings.size(); ++k)
    if (topology.wrap() && (*topology.wrap())[k]) rings[k] = topology.extent()[k];
  return rings;
}

std::int64_t hops_between(const std::uint32_t* a, const std::uint32_t* b,
                          const std::vector<std::int64_t>& rings) {
  std::int64_t hops = 0;
  for (std::size_t k = 0; k < rings.size(); ++k) {
    std::int64_t apart = std::abs(std::int64_t{a[k]} - std::int64_t{b[k]});
    hops += rings[k] > 0 ? std::min(apart, rings[k] - apart) : apart;
  }
  return hops;
}

AxisHops along(const Places& places, std::int64_t size, std::int64_t stride,
               const std::vector<std::int64_t>& rings) {
  AxisHops axis;
  std::int64_t sum = 0;
  auto step = [&](std::int64_t from, std::int64_t to) {
    if (places.slices[static_cast<std::size_t>(from)] !=
        places.slices[static_cast<std::size_t>(to)]) {
      ++axis.between_slices;
      return;
    }
    std::int64_t hops = hops_between(places.of(from), places.of(to), rings);
    ++axis.steps;
    sum += hops;
    axis.worst = std::max(axis.worst, hops);
  };
  std::int64_t around = size > 2 ? size : size - 1;  // two devices have one step
  for (std::int64_t block = 0; block < std::ssize(places.slices); block += size * stride)
    for (std::int64_t i = 0; i < around; ++i)
      for (std::int64_t from = block + i * stride; from < block + (i + 1) * stride; ++from)
        step(from, i + 1 < size ? from + stride : from - i * stride);
  if (axis.steps > 0) axis.mean = static_cast<double>(sum) / static_cast<double>(axis.steps);
  return axis;
}

// At most three decimals.
std::string short_number(double value) { return cat(std::round(value * 1000) / 1000); }

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
    append(out, cat(i == 0 ? "" : ", ", mesh.axes()[i].name, ' ', axes[i]));
  return out;
}

std::string MeshHops::to_string() const { return join(axes, ", "); }

std::string AxisHops::to_string() const {
  std::string out = cat(short_number(mean), " (worst ", worst);
  if (between_slices > 0) append(out, cat(", ", between_slices, " between slices"));
  return out + ')';
}

}  // namespace meshard
