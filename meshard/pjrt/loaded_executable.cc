// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/loaded_executable.h"

#include <utility>

#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt {

LoadedExecutable::LoadedExecutable(ClientRef client, PJRT_LoadedExecutable* raw)
    : own_(client, client->api, raw), executable_(client->api, nullptr) {}

Result<LoadedExecutable> LoadedExecutable::make(ClientRef client, PJRT_LoadedExecutable* raw,
                                                const ExecutableSignature* signature) {
  const PJRT_Api* api = client->api;
  LoadedExecutable loaded(client, raw);  // owns raw from here on
  MESHARD_PJRT_QUERY(api, PJRT_LoadedExecutable_GetExecutable, get, loaded_executable, raw);
  loaded.executable_ = Executable(api, get.executable, client);
  MESHARD_RETURN_IF_ERROR(loaded.read_devices());
  MESHARD_RETURN_IF_ERROR(loaded.read_signature(signature));
  return loaded;
}

Result<void> LoadedExecutable::read_devices() {
  MESHARD_PJRT_QUERY(own_.client->api, PJRT_LoadedExecutable_AddressableDevices, list, executable,
                     own_.raw);
  std::vector<const Device*> devices;
  for (std::size_t i = 0; i < list.num_addressable_devices; ++i) {
    const Device* device = own_.client->find(list.addressable_devices[i]);
    if (device == nullptr)
      return Error(ErrorCode::kInternal,
                   "[pjrt] the plugin named a device that the client does not have");
    devices.push_back(device);
  }
  set_devices(*own_.client->intern(devices));
  return {};
}

void LoadedExecutable::set_devices(const DeviceList& devices) {
  devices_ = &devices;
  site_ = std::make_shared<const internal::LaunchSite>(
      internal::LaunchSite{executable_.name().value_or("a program"), devices_});
}

void LoadedExecutable::set_parts(const DeviceList& devices) {
  set_devices(devices);
  is_portable_ = true;
}

Result<void> LoadedExecutable::read_signature(const ExecutableSignature* signature) {
  if (signature != nullptr) {
    signature_ = *signature;
  } else {
    MESHARD_ASSIGN_OR_RETURN(std::string module, executable_.optimized_program());
    MESHARD_ASSIGN_OR_RETURN(signature_, ExecutableSignature::from_module(module));
    interface_ = interface_bytes(module);
  }
  MESHARD_PJRT_QUERY(own_.client->api, PJRT_Executable_NumOutputs, outputs, executable,
                     executable_.raw());
  // The plugin writes the number of outputs that it reports; a wrong signature would let it write
  // out of bounds.
  if (outputs.num_outputs != signature_.results.size())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[pjrt] the program has ", outputs.num_outputs,
                     " outputs, but its signature has ", signature_.results.size()));
  for (const ArrayType& type : signature_.parameters)
    parameter_types_.push_back(own_.client->intern(type));
  for (const ArrayType& type : signature_.results) {
    result_types_.push_back(own_.client->intern(type));
    result_sizes_.push_back(type.host_size());
    result_bytes_ += static_cast<std::int64_t>(type.host_size());
  }
  return {};
}

Result<std::string> LoadedExecutable::take_interface() {
  if (!interface_.empty()) return std::exchange(interface_, {});
  MESHARD_ASSIGN_OR_RETURN(std::string module, executable_.optimized_program());
  return interface_bytes(module);
}

bool LoadedExecutable::can_run_device_by_device() const {
  const LaunchRules& rules = own_.client->rules;
  return devices_->size() == 1 || is_portable_ ||
         (!rules.parts_start_together &&
          (!signature_.has_collectives || !rules.device_launch_may_run_inline));
}

}  // namespace meshard::pjrt
