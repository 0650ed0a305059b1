#include "meshard/processes/internal/device_meeting.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard::internal {

DevicePlace place_of(int device, std::span<const int> counts) {
  int process = 0;
  for (int count : counts) {
    if (device < count) break;
    device -= count;
    ++process;
  }
  return {process, device};
}

DeviceGroup DeviceGroup::of(std::span<const int> devices, std::span<const int> counts,
                            int process) {
  DeviceGroup group;
  group.devices.assign(devices.begin(), devices.end());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    DevicePlace place = place_of(devices[i], counts);
    auto known = std::find(group.processes.begin(), group.processes.end(), place.process);
    auto at = static_cast<std::size_t>(known - group.processes.begin());
    if (known == group.processes.end()) {
      group.processes.push_back(place.process);
      group.first_devices.push_back(place.number);
      group.positions.emplace_back();
    }
    group.positions[at].push_back(i);
    if (place.process == process) group.here = at;
  }
  group.is_whole = true;
  for (std::size_t p = 0; p < group.processes.size(); ++p)
    group.is_whole &=
        std::ssize(group.positions[p]) == counts[static_cast<std::size_t>(group.processes[p])];
  return group;
}

Result<void> DeviceRound::check_equal(const DeviceGroup& group) const {
  auto other = std::find_if(calls_.begin(), calls_.end(),
                            [&](const GroupCall& each) { return !(each == calls_[0]); });
  if (other == calls_.end()) return {};
  auto device = [&](auto member) {
    return group.devices[group.positions[group.here][static_cast<std::size_t>(member)]];
  };
  return Error(ErrorCode::kFailedPrecondition,
               cat("[processes] device ", device(0), " calls ", calls_[0].to_string(),
                   ", but device ", device(other - calls_.begin()), " calls ", other->to_string()));
}

std::shared_ptr<DeviceRound> DeviceMeeting::join(std::size_t member, const GroupCall& call,
                                                 const void* in) {
  std::lock_guard lock(mutex_);
  if (!open_) open_ = std::make_shared<DeviceRound>(group_.num_here());
  std::shared_ptr<DeviceRound> round = open_;
  round->calls_[member] = call;
  round->in_[member] = in;
  if (++round->joined_ == group_.num_here()) open_.reset();
  return round;
}

}  // namespace meshard::internal
