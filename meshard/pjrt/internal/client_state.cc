// Tested in tests/plugin/pjrt_fake_test.cc.
#include "meshard/pjrt/internal/client_state.h"

#include <algorithm>
#include <cctype>

#include "meshard/pjrt/client_ref.h"
#include "meshard/pjrt/launch.h"

namespace meshard::pjrt::internal {

void add_references(ClientState* client, long count) noexcept {
  client->references.fetch_add(count, std::memory_order_relaxed);
}

void drop_reference(ClientState* client) noexcept {
  if (client->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete client;
}

ClientState::~ClientState() {
  for (LaunchRecord* record : in_flight) drop_launch(record);
  MESHARD_PJRT_ARGS(PJRT_Client_Destroy, args);
  args.client = raw;
  (void)MESHARD_PJRT_CALL(api, PJRT_Client_Destroy, args);  // nobody is left to hear of a failure
}

Result<void> ClientState::initialise() {
  MESHARD_PJRT_ARGS(PJRT_Client_PlatformName, name);
  name.client = raw;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Client_PlatformName, name));
  platform.assign(name.platform_name, name.platform_name_size);
  std::transform(platform.begin(), platform.end(), platform.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  MESHARD_PJRT_ARGS(PJRT_Client_PlatformVersion, version);
  version.client = raw;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Client_PlatformVersion, version));
  platform_version.assign(version.platform_version, version.platform_version_size);
  MESHARD_PJRT_ARGS(PJRT_Client_ProcessIndex, process);
  process.client = raw;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Client_ProcessIndex, process));
  process_index = process.process_index;
  rules = launch_rules(platform, plugin.version().minor);

  MESHARD_PJRT_ARGS(PJRT_Client_Devices, list);
  list.client = raw;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Client_Devices, list));
  for (std::size_t i = 0; i < list.num_devices; ++i) {
    MESHARD_PJRT_ARGS(PJRT_Device_GetDescription, description);
    description.device = list.devices[i];
    MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Device_GetDescription, description));
    auto device = std::make_unique<Device>(api, list.devices[i],
                                           DeviceDescription(api, description.device_description));
    by_id[device->id()] = device.get();
    by_handle[list.devices[i]] = device.get();
    devices.push_back(std::move(device));
  }
  MESHARD_PJRT_ARGS(PJRT_Client_AddressableDevices, ours);
  ours.client = raw;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api, PJRT_Client_AddressableDevices, ours));
  for (std::size_t i = 0; i < ours.num_addressable_devices; ++i)
    if (const Device* device = find(ours.addressable_devices[i])) addressable.push_back(device);
  if (addressable.empty())
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[client] ", plugin.path(), " gave a client without devices"));
  return {};
}

const ArrayType* ClientState::intern(const ArrayType& type) {
  std::lock_guard lock(types_mutex);
  return &*types.insert(type).first;
}

const Device* ClientState::find(PJRT_Device* device) const {
  auto found = by_handle.find(device);
  return found == by_handle.end() ? nullptr : found->second;
}

}  // namespace meshard::pjrt::internal
