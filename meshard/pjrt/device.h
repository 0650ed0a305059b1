// Devices and memories of a client, and descriptions of devices that may be absent.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/named_value.h"

struct PJRT_Api;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Memory;

namespace meshard::pjrt {

/// The description of a device that may be absent. Valid as long as its client or topology.
class DeviceDescription {
 public:
  /// Reads the description of a plugin's handle. @error the plugin's error
  static Result<DeviceDescription> read(const PJRT_Api* api, PJRT_DeviceDescription* raw);

  /// The id that device assignments use; ids may be sparse and in any order.
  int id() const { return id_; }
  /// The process (host) that the device belongs to.
  int process_index() const { return process_index_; }
  /// `cpu`, `TPU v5 lite`, ... @error the plugin's error
  Result<std::string> kind() const;
  /// `coords`, `core_on_chip`, `slice_index`, ... Empty if the plugin does not implement it.
  /// @error the plugin's error
  Result<std::vector<NamedValue>> attributes() const;
  /// The plugin's short text for the device; `device 3` if it provides none.
  std::string to_string() const;
  /// The description of a like device with another id, in a process that is not part of the plugin.
  DeviceDescription renumbered(int id, int process) const;

 private:
  DeviceDescription(const PJRT_Api* api, PJRT_DeviceDescription* raw) : api_(api), raw_(raw) {}
  const PJRT_Api* api_;
  PJRT_DeviceDescription* raw_;
  int id_ = -1;
  int process_index_ = 0;
  bool is_renumbered_ = false;
};

/// One memory of a device: `device`, `pinned_host`, ... Valid as long as its client.
class Memory {
 public:
  /// Reads the memory of a plugin's handle. @error the plugin's error
  static Result<Memory> read(const PJRT_Api* api, PJRT_Memory* raw);
  int id() const { return id_; }
  const std::string& kind() const { return kind_; }
  PJRT_Memory* raw() const { return raw_; }

 private:
  explicit Memory(PJRT_Memory* raw) : raw_(raw) {}
  PJRT_Memory* raw_;
  int id_ = -1;
  std::string kind_;
};

/// Memory use of a device, in bytes. Values that the plugin does not report are empty.
struct DeviceMemoryStats {
  std::int64_t bytes_in_use = 0;
  std::optional<std::int64_t> peak_bytes_in_use;
  std::optional<std::int64_t> bytes_limit;
  std::optional<std::int64_t> largest_free_block;
};

/// A device of a client. Owned by the client and valid as long as the client; compare by address.
class Device {
 public:
  /// Reads the device of a plugin's handle, on the platform with this name. @error the plugin's
  /// error
  /// @pre `platform` lives as long as the device
  static Result<std::unique_ptr<Device>> read(const PJRT_Api* api, PJRT_Device* raw,
                                              const std::string& platform);
  /// A device of another process, which the plugin does not have.
  static std::unique_ptr<Device> elsewhere(const PJRT_Api* api,
                                           const DeviceDescription& description,
                                           const std::string& platform);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int id() const { return description_.id(); }
  /// The plugin's own id of the device. It differs from id() if the plugin does not have the other
  /// processes (process_devices.h).
  int plugin_id() const { return plugin_id_; }
  /// Gives the device an id that differs from the plugin's. @pre nothing refers to the device yet
  void renumber(int id, int process) { description_ = description_.renumbered(id, process); }
  int process_index() const { return description_.process_index(); }
  /// Whether this process can place data on it.
  bool addressable() const { return addressable_; }
  /// Index among the devices of the host; -1 if not addressable or unknown.
  int local_hardware_id() const { return local_hardware_id_; }
  const DeviceDescription& description() const { return description_; }
  std::string to_string() const { return description_.to_string(); }
  /// Client::name of its client. Each platform has its own ids.
  const std::string& platform() const { return *platform_; }
  /// ` of cuda` in a process with devices of several platforms (name_platforms), otherwise empty.
  /// Messages append it to the id.
  std::string of_platform() const;

  /// The memories that the device can use, queried from the plugin at each call.
  Result<std::vector<Memory>> memories() const;
  Result<Memory> default_memory() const;
  /// @error unimplemented on plugins that do not report it (the CPU plugin)
  Result<DeviceMemoryStats> memory_stats() const;

  /// The bytes of the live buffers of this process on the device, by their types. Small results of
  /// launches that a thread has dropped are included until its next launch or wait. Temporary
  /// memory of running programs is not included.
  std::int64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  /// The most live bytes so far.
  std::int64_t peak_live_bytes() const { return peak_live_bytes_.load(std::memory_order_relaxed); }
  /// Counts the bytes of buffers that became live, or are no longer live.
  void count_bytes(std::int64_t bytes, bool live) const noexcept {
    if (live)
      add_live_bytes(bytes);
    else
      live_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  PJRT_Device* raw() const { return raw_; }

 private:
  Device(const PJRT_Api* api, PJRT_Device* raw, const DeviceDescription& description,
         const std::string& platform)
      : api_(api),
        raw_(raw),
        platform_(&platform),
        description_(description),
        plugin_id_(description.id()) {}
  void add_live_bytes(std::int64_t bytes) const noexcept;

  const PJRT_Api* api_;
  PJRT_Device* raw_;
  const std::string* platform_;
  DeviceDescription description_;
  int plugin_id_ = -1;
  bool addressable_ = false;
  int local_hardware_id_ = -1;
  // Mutable: buffers refer to a const device.
  mutable std::atomic<std::int64_t> live_bytes_{0}, peak_live_bytes_{0};
};

/// Makes messages name the platform of each device, because the process has several.
void name_platforms();

}  // namespace meshard::pjrt

namespace meshard::pjrt {

class Device;

/// Devices of one client in an order. Owned by the client, which has one object for equal lists:
/// compare by address.
class DeviceList {
 public:
  explicit DeviceList(std::vector<const Device*> devices) : devices_(std::move(devices)) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::size_t size() const { return devices_.size(); }
  const Device& operator[](std::size_t i) const { return *devices_[i]; }
  std::span<const Device* const> devices() const { return devices_; }
  /// The position in this list of each device of `other`; none if the two have other devices.
  std::optional<std::vector<std::uint32_t>> positions_of(const DeviceList& other) const;

 private:
  std::vector<const Device*> devices_;
};

}  // namespace meshard::pjrt
