// The devices of an array, in the order of its buffers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
