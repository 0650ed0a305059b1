// Device positions of the fake plugin: device attributes and the client's topology.
#include <algorithm>
#include <cstring>

#include "tests/fake_plugin/state.h"

namespace fake {
namespace {

PJRT_NamedValue named(const char* name, PJRT_NamedValue_Type type) {
  PJRT_NamedValue value{};
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = strlen(name);
  value.type = type;
  value.value_size = 1;
  return value;
}

PJRT_NamedValue number(const char* name, int64_t value) {
  PJRT_NamedValue named_value = named(name, PJRT_NamedValue_kInt64);
  named_value.int64_value = value;
  return named_value;
}

PJRT_NamedValue three(const char* name, const int64_t (&values)[3]) {
  PJRT_NamedValue named_value = named(name, PJRT_NamedValue_kInt64List);
  named_value.int64_array_value = values;
  named_value.value_size = 3;
  return named_value;
}

}  // namespace

void place_on_grid(PJRT_DeviceDescription& device, const Grid& grid) {
  int64_t rest = device.id;
  int64_t core = rest % grid.cores;
  rest /= grid.cores;
  for (int k = 0; k < 3; ++k) {
    device.coords[k] = rest % grid.size[k];
    rest /= grid.size[k];
  }
  device.kind = grid.kind;
  device.attributes = {three("coords", device.coords), number("core_on_chip", core),
                       number("slice_index", rest)};
}

PJRT_Error* topology_of_client(PJRT_Client_TopologyDescription_Args* args) {
  if (!control().grid) return fail(PJRT_Error_Code_UNIMPLEMENTED, "no grid was set");
  PJRT_TopologyDescription& topology = args->client->topology;
  topology.devices.clear();
  for (PJRT_Device* device : args->client->devices)
    topology.devices.push_back(&device->description);
  std::copy_n(control().grid->wrap, 3, topology.wrap);
  topology.attributes = {three("wrap", topology.wrap)};
  args->topology = &topology;
  return nullptr;
}

PJRT_Error* topology_devices(PJRT_TopologyDescription_GetDeviceDescriptions_Args* args) {
  args->descriptions = args->topology->devices.data();
  args->num_descriptions = args->topology->devices.size();
  return nullptr;
}

PJRT_Error* topology_attributes(PJRT_TopologyDescription_Attributes_Args* args) {
  args->attributes = args->topology->attributes.data();
  args->num_attributes = args->topology->attributes.size();
  return nullptr;
}

}  // namespace fake
