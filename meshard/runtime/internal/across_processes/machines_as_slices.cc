#include "meshard/runtime/internal/across_processes/machines_as_slices.h"

#include <map>
#include <string>
#include <utility>

namespace meshard::internal {

Topology machines_as_slices(Topology topology, const std::vector<ProcessInfo>& members) {
  std::map<std::string, std::int64_t> machines;
  for (const ProcessInfo& member : members) machines.emplace(member.host, std::ssize(machines));
  if (machines.size() < 2 || topology.has_coords()) return topology;
  std::vector<DeviceAttributes> devices = topology.devices();
  for (DeviceAttributes& device : devices) {
    if (device.slice_index || device.process_index >= std::ssize(members)) return topology;
    device.slice_index = machines.at(members[static_cast<std::size_t>(device.process_index)].host);
  }
  return Topology(std::move(devices));
}

}  // namespace meshard::internal
