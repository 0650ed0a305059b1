// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/device.h"

#include <algorithm>

#include "meshard/pjrt/internal/c_api.h"

namespace meshard::pjrt {

Result<DeviceDescription> DeviceDescription::read(const PJRT_Api* api,
                                                  PJRT_DeviceDescription* raw) {
  DeviceDescription description(api, raw);
  MESHARD_PJRT_QUERY(api, PJRT_DeviceDescription_Id, id, device_description, raw);
  description.id_ = id.id;
  MESHARD_PJRT_QUERY(api, PJRT_DeviceDescription_ProcessIndex, process, device_description, raw);
  description.process_index_ = process.process_index;
  return description;
}

Result<std::string> DeviceDescription::kind() const {
  MESHARD_PJRT_QUERY(api_, PJRT_DeviceDescription_Kind, args, device_description, raw_);
  return std::string(args.device_kind, args.device_kind_size);
}

Result<std::vector<NamedValue>> DeviceDescription::attributes() const {
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_Attributes, args);
  args.device_description = raw_;
  if (auto read = MESHARD_PJRT_CALL(api_, PJRT_DeviceDescription_Attributes, args); !read.ok()) {
    if (read.error().code() == ErrorCode::kUnimplemented) return std::vector<NamedValue>();
    return read.error();
  }
  return internal::read_named_values(args.attributes, args.num_attributes);
}

DeviceDescription DeviceDescription::renumbered(int id, int process) const {
  DeviceDescription other = *this;
  other.id_ = id;
  other.process_index_ = process;
  other.is_renumbered_ = true;
  return other;
}

std::string DeviceDescription::to_string() const {
  if (is_renumbered_) return cat("device ", id_);  // the plugin's text has another id
  MESHARD_PJRT_ARGS(PJRT_DeviceDescription_ToString, args);
  args.device_description = raw_;
  if (!MESHARD_PJRT_CALL(api_, PJRT_DeviceDescription_ToString, args).ok())
    return cat("device ", id_);
  return {args.to_string, args.to_string_size};
}

Result<Memory> Memory::read(const PJRT_Api* api, PJRT_Memory* raw) {
  Memory memory(raw);
  MESHARD_PJRT_QUERY(api, PJRT_Memory_Id, id, memory, raw);
  memory.id_ = id.id;
  MESHARD_PJRT_QUERY(api, PJRT_Memory_Kind, kind, memory, raw);
  memory.kind_.assign(kind.kind, kind.kind_size);
  return memory;
}

namespace {

constinit std::atomic<bool> several_platforms{false};

}  // namespace

void name_platforms() { several_platforms.store(true, std::memory_order_relaxed); }

std::string Device::of_platform() const {
  return several_platforms.load(std::memory_order_relaxed) ? cat(" of ", *platform_)
                                                           : std::string();
}

Result<std::unique_ptr<Device>> Device::read(const PJRT_Api* api, PJRT_Device* raw,
                                             const std::string& platform) {
  MESHARD_PJRT_QUERY(api, PJRT_Device_GetDescription, about, device, raw);
  MESHARD_ASSIGN_OR_RETURN(DeviceDescription description,
                           DeviceDescription::read(api, about.device_description));
  std::unique_ptr<Device> device(new Device(api, raw, description, platform));
  MESHARD_PJRT_QUERY(api, PJRT_Device_IsAddressable, args, device, raw);
  device->addressable_ = args.is_addressable;
  if (!device->addressable_) return device;
  MESHARD_PJRT_ARGS(PJRT_Device_LocalHardwareId, local);
  local.device = raw;
  auto known = MESHARD_PJRT_CALL(api, PJRT_Device_LocalHardwareId, local);
  if (known.ok())
    device->local_hardware_id_ = local.local_hardware_id;
  else if (known.error().code() != ErrorCode::kUnimplemented)
    return known.error();
  return device;
}

std::unique_ptr<Device> Device::elsewhere(const PJRT_Api* api, const DeviceDescription& description,
                                          const std::string& platform) {
  return std::unique_ptr<Device>(new Device(api, nullptr, description, platform));
}

void Device::add_live_bytes(std::int64_t bytes) const noexcept {
  std::int64_t now = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_live_bytes_.load(std::memory_order_relaxed);
  while (now > peak &&
         !peak_live_bytes_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

Result<std::vector<Memory>> Device::memories() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Device_AddressableMemories, args, device, raw_);
  std::vector<Memory> memories;
  for (std::size_t i = 0; i < args.num_memories; ++i) {
    MESHARD_ASSIGN_OR_RETURN(Memory memory, Memory::read(api_, args.memories[i]));
    memories.push_back(std::move(memory));
  }
  return memories;
}

Result<Memory> Device::default_memory() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Device_DefaultMemory, args, device, raw_);
  return Memory::read(api_, args.memory);
}

Result<DeviceMemoryStats> Device::memory_stats() const {
  MESHARD_PJRT_QUERY(api_, PJRT_Device_MemoryStats, args, device, raw_);
  DeviceMemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.bytes_limit = args.bytes_limit;
  if (args.largest_free_block_bytes_is_set)
    stats.largest_free_block = args.largest_free_block_bytes;
  return stats;
}

std::optional<std::vector<std::uint32_t>> DeviceList::positions_of(const DeviceList& other) const {
  if (size() != other.size()) return std::nullopt;
  std::vector<std::uint32_t> positions;
  for (const Device* device : other.devices_) {
    auto at = std::ranges::find(devices_, device);
    if (at == devices_.end()) return std::nullopt;
    positions.push_back(static_cast<std::uint32_t>(at - devices_.begin()));
  }
  return positions;
}

}  // namespace meshard::pjrt
