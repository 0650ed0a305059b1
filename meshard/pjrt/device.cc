// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/device.h"

#include "meshard/pjrt/internal/c_api.h"

namespace meshard::pjrt {

DeviceDescription::DeviceDescription(const PJRT_Api* api, PJRT_DeviceDescription* raw)
    : api_(api), raw_(raw) {
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_Id, id);
  id.device_description = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_DeviceDescription_Id, id).ok()) id_ = id.id;
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_ProcessIndex, process);
  process.device_description = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_DeviceDescription_ProcessIndex, process).ok())
    process_index_ = process.process_index;
}

std::string DeviceDescription::kind() const {
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_Kind, args);
  args.device_description = raw_;
  if (!MESHARD_PJRT_CALL(api_, PJRT_DeviceDescription_Kind, args).ok()) return "";
  return {args.device_kind, args.device_kind_size};
}

std::vector<NamedValue> DeviceDescription::attributes() const {
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_Attributes, args);
  args.device_description = raw_;
  if (!MESHARD_PJRT_CALL(api_, PJRT_DeviceDescription_Attributes, args).ok()) return {};
  return internal::read_named_values(args.attributes, args.num_attributes);
}

std::string DeviceDescription::to_string() const {
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_ToString, args);
  args.device_description = raw_;
  if (!MESHARD_PJRT_CALL(api_, PJRT_DeviceDescription_ToString, args).ok())
    return cat("device ", id_);
  return {args.to_string, args.to_string_size};
}

Memory::Memory(const PJRT_Api* api, PJRT_Memory* raw) : raw_(raw) {
  MESHARD_PJRT_ARGS(PJRT_Memory_Id, id);
  id.memory = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_Memory_Id, id).ok()) id_ = id.id;
  MESHARD_PJRT_ARGS(PJRT_Memory_Kind, kind);
  kind.memory = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_Memory_Kind, kind).ok()) kind_.assign(kind.kind, kind.kind_size);
}

Device::Device(const PJRT_Api* api, PJRT_Device* raw, const DeviceDescription& description)
    : api_(api), raw_(raw), description_(description) {
  MESHARD_PJRT_ARGS(PJRT_Device_IsAddressable, args);
  args.device = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_Device_IsAddressable, args).ok())
    addressable_ = args.is_addressable;
  if (!addressable_) return;
  MESHARD_PJRT_ARGS(PJRT_Device_LocalHardwareId, local);
  local.device = raw;
  if (MESHARD_PJRT_CALL(api, PJRT_Device_LocalHardwareId, local).ok())
    local_hardware_id_ = local.local_hardware_id;
}

Result<std::vector<Memory>> Device::memories() const {
  MESHARD_PJRT_ARGS(PJRT_Device_AddressableMemories, args);
  args.device = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api_, PJRT_Device_AddressableMemories, args));
  std::vector<Memory> memories;
  for (std::size_t i = 0; i < args.num_memories; ++i) memories.emplace_back(api_, args.memories[i]);
  return memories;
}

Result<Memory> Device::default_memory() const {
  MESHARD_PJRT_ARGS(PJRT_Device_DefaultMemory, args);
  args.device = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api_, PJRT_Device_DefaultMemory, args));
  return Memory(api_, args.memory);
}

Result<DeviceMemoryStats> Device::memory_stats() const {
  MESHARD_PJRT_ARGS(PJRT_Device_MemoryStats, args);
  args.device = raw_;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(api_, PJRT_Device_MemoryStats, args));
  DeviceMemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.bytes_limit = args.bytes_limit;
  if (args.largest_free_block_bytes_is_set)
    stats.largest_free_block = args.largest_free_block_bytes;
  return stats;
}

}  // namespace meshard::pjrt
