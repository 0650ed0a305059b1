#include "meshard/topology/hops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

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
  places.one_slice =
      std::all_of(places.slices.begin(), places.slices.end(),
                  [&](std::int64_t slice) { return slice == places.slices.front(); });
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
