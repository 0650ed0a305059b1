#include "tools/conformance/jax/topology_rows.h"

namespace meshard::conformance {

using Json = nlohmann::json;

Topology topology_of_rows(const Json& fields) {
  std::vector<DeviceAttributes> devices;
  for (const Json& row : fields.at("devices")) {
    devices.push_back({.id = row[0],
                       .process_index = row[6],
                       .slice_index = {},
                       .coords = {row[1], row[2], row[3]},
                       .core_on_chip = row[4],
                       .kind = fields.at("device_kind")});
    if (!row[5].is_null()) devices.back().slice_index = row[5].get<std::int64_t>();
  }
  return Topology(std::move(devices));
}

Json rows_of(const Topology& topology) {
  Json rows = Json::array();
  for (const DeviceAttributes& device : topology.devices())
    rows.push_back({device.id, device.coords[0], device.coords[1], device.coords[2],
                    device.core_on_chip, device.slice_index ? Json(*device.slice_index) : Json(),
                    device.process_index});
  return rows;
}

}  // namespace meshard::conformance
