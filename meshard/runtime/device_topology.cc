// Tested in tests/plugin/device_topology_test.cc.
#include "meshard/runtime/device_topology.h"

#include "meshard/mesh/builders.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/internal/across_processes/machines_as_slices.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

HostArray get_logical_mesh(const Mesh& mesh) {
  Dimensions sizes;
  if (mesh.rows() > 1) sizes.push_back(mesh.rows());
  for (std::int64_t size : mesh.shape()) sizes.push_back(size);
  return HostArray::from_vector(mesh.device_ids().to_vector(), Shape(std::move(sizes)));
}

namespace {

using NamedValues = std::vector<pjrt::NamedValue>;

std::optional<std::int64_t> number_called(const NamedValues& attributes, std::string_view name) {
  const std::int64_t* value = pjrt::find_value<std::int64_t>(attributes, name);
  return value ? std::optional(*value) : std::nullopt;
}

Result<DeviceAttributes> attributes_of_device(const pjrt::DeviceDescription& description) {
  MESHARD_ASSIGN_OR_RETURN(NamedValues attributes, description.attributes());
  MESHARD_ASSIGN_OR_RETURN(std::string kind, description.kind());
  DeviceAttributes device{.id = description.id(),
                          .process_index = description.process_index(),
                          .slice_index = number_called(attributes, "slice_index"),
                          .coords = {},
                          .core_on_chip = number_called(attributes, "core_on_chip").value_or(0),
                          .kind = std::move(kind)};
  if (const auto* coords = pjrt::find_value<std::vector<std::int64_t>>(attributes, "coords"))
    device.coords.assign(coords->begin(), coords->end());
  return device;
}

// Which directions are closed, as the plugin reports; none if it does not.
std::optional<Topology::Wrap> described_wrap(const pjrt::TopologyDescription& topology,
                                             std::size_t directions) {
  Result<NamedValues> attributes = topology.attributes();
  if (!attributes) return std::nullopt;
  const auto* closed = pjrt::find_value<std::vector<std::int64_t>>(*attributes, "wrap");
  if (!closed || closed->size() != directions) return std::nullopt;
  Topology::Wrap wrap;
  for (std::int64_t closes : *closed) wrap.push_back(closes != 0);
  return wrap;
}

Result<Topology> made(std::vector<DeviceAttributes> devices,
                      const pjrt::TopologyDescription* described) {
  return caught([&] {
    std::optional<Topology::Wrap> wrap;
    if (described && !devices.empty())
      wrap = described_wrap(*described, devices.front().coords.size());
    return wrap ? Topology(std::move(devices), *wrap) : Topology(std::move(devices));
  });
}

}  // namespace

Result<Topology> topology_of(const pjrt::Client& client) {
  std::vector<DeviceAttributes> devices;
  for (std::size_t i = 0; i < client.device_count(); ++i) {
    MESHARD_ASSIGN_OR_RETURN(DeviceAttributes device,
                             attributes_of_device(client.device(i).description()));
    devices.push_back(std::move(device));
  }
  Result<pjrt::TopologyDescription> described = pjrt::TopologyDescription::of(client);
  return made(std::move(devices), described ? &*described : nullptr);
}

Result<Topology> topology_of(const pjrt::TopologyDescription& topology) {
  std::vector<DeviceAttributes> devices;
  for (const pjrt::DeviceDescription& description : topology.devices()) {
    MESHARD_ASSIGN_OR_RETURN(DeviceAttributes device, attributes_of_device(description));
    devices.push_back(std::move(device));
  }
  return made(std::move(devices), &topology);
}

Topology runtime_topology(SourceLocation where) { return runtime_topology("", where); }

Topology runtime_topology(std::string_view device_type, SourceLocation where) {
  Result<Topology> topology = topology_of(runtime_client(device_type, where));
  if (!topology) throw topology.error().at(where);
  return internal::machines_as_slices(*std::move(topology), processes().members());
}

Mesh mesh_1d(std::string name, SourceLocation where) {
  const pjrt::Client& client = runtime_client(where);
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < client.device_count(); ++i) ids.push_back(client.device(i).id());
  std::int64_t count = std::ssize(ids);
  return Mesh({{std::move(name), count}}, std::move(ids), where);
}

}  // namespace meshard
