// Tested in tests/plugin/buffer_list_test.cc.
#include "meshard/pjrt/device_list.h"

#include <algorithm>

namespace meshard::pjrt {

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
