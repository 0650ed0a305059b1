#include "meshard/topology/hops.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace meshard {
namespace {

using Places = std::vector<const DeviceAttributes*>;  // by position of a mesh

Places places_of(const Mesh& mesh, const Topology& topology, SourceLocation where) {
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
  RankMap index = RankMap::listed(std::move(ids));
  Places places;
  for (std::int64_t id : mesh.as_root(where).device_ids()) {
    std::optional<std::int64_t> at = index.find(id);
    if (!at)
      throw_invalid(where, "[topology] device ", id, " of ", mesh, " is not in the topology");
    places.push_back(&topology.devices()[static_cast<std::size_t>(*at)]);
  }
  return places;
}

std::int64_t hops_between(const DeviceAttributes& a, const DeviceAttributes& b,
                          const IntVector& extent, const Topology::Wrap& wrap) {
  std::int64_t hops = 0;
  for (std::size_t k = 0; k < extent.size(); ++k) {
    std::int64_t apart = std::abs(a.coords[k] - b.coords[k]);
    hops += wrap[k] ? std::min(apart, extent[k] - apart) : apart;
  }
  return hops;
}

AxisHops along(const Places& places, std::int64_t size, std::int64_t stride,
               const IntVector& extent, const Topology::Wrap& wrap) {
  AxisHops axis;
  std::int64_t sum = 0;
  for (std::int64_t position = 0; position < std::ssize(places) && size > 1; ++position) {
    std::int64_t i = position / stride % size;
    if (size == 2 && i == 1) continue;
    std::int64_t next = i + 1 < size ? position + stride : position - i * stride;
    const DeviceAttributes& from = *places[static_cast<std::size_t>(position)];
    const DeviceAttributes& to = *places[static_cast<std::size_t>(next)];
    if (from.slice_index != to.slice_index) {
      ++axis.between_slices;
      continue;
    }
    std::int64_t hops = hops_between(from, to, extent, wrap);
    ++axis.steps;
    sum += hops;
    axis.worst = std::max(axis.worst, hops);
  }
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
  IntVector extent = topology.extent();
  Topology::Wrap open(extent.size(), false);
  MeshHops hops{{}, topology.wrap().has_value()};
  std::int64_t stride = mesh.size();
  for (std::int64_t size : mesh.shape()) {
    stride /= size;
    hops.axes.push_back(along(places, size, stride, extent, topology.wrap().value_or(open)));
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
