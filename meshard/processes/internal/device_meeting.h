// Where the members of a group of devices that are in one process meet.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/processes/communicator.h"

namespace meshard::internal {

/// A device: its process, and its number among the devices of that process.
struct DevicePlace {
  int process;
  int number;
};
/// @pre the device exists; devices are numbered process by process
DevicePlace place_of(int device, std::span<const int> counts);

/// A value: a group of devices, by process. The processes are in the order of their first members,
/// as are the lists below.
struct DeviceGroup {
  std::vector<int> devices;
  std::vector<int> processes;
  /// The positions in the group of the members in each process, ascending.
  std::vector<std::vector<std::size_t>> positions;
  /// The first member in each process, as a number among the devices of that process.
  std::vector<int> first_devices;
  /// Which of the processes is this one.
  std::size_t here = 0;
  /// Whether each of its processes has no device outside of it.
  bool is_whole = false;

  std::size_t size() const { return devices.size(); }
  /// The number of members in this process.
  std::size_t num_here() const { return positions[here].size(); }

  /// Groups devices, which are numbered process by process.
  /// @pre `devices` are distinct and exist; `process` has one of them
  static DeviceGroup of(std::span<const int> devices, std::span<const int> counts, int process);
};

/// One collective of the members in this process. Shared by them.
class DeviceRound {
 public:
  explicit DeviceRound(std::size_t members) : calls_(members), in_(members) {}

  /// Waits until all members have called it. The last one calls `work` before the others go on; its
  /// error is returned to all of them, and in all later meetings.
  template <class Work>
  Result<void> meet(const DeviceGroup& group, Work work) {
    std::unique_lock lock(mutex_);
    const std::size_t meeting = meetings_;
    if (++arrived_ == in_.size()) {
      arrived_ = 0;
      lock.unlock();  // the others only wait
      Result<void> done = meeting == 0 ? check_equal(group) : Result<void>();
      try {
        if (done.ok()) done = work();
      } catch (const std::bad_alloc&) {  // the others must not wait for ever
        done = Error(ErrorCode::kResourceExhausted, "[processes] no memory for a collective");
      }
      lock.lock();
      if (outcome_.ok()) outcome_ = std::move(done);
      ++meetings_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return meetings_ != meeting; });
    }
    return outcome_;
  }
  /// Only waits.
  Result<void> meet(const DeviceGroup& group) {
    return meet(group, [] { return Result<void>(); });
  }

  /// The operands of the members in this process, valid between the first meeting and the last.
  std::span<const void* const> operands() const { return in_; }
  const std::byte* operand(std::size_t member) const {
    return static_cast<const std::byte*>(in_[member]);
  }

  /// Made by the last member in a meeting.
  MessageMemory shared, received;

 private:
  friend class DeviceMeeting;
  Result<void> check_equal(const DeviceGroup& group) const;

  std::vector<GroupCall> calls_;
  std::vector<const void*> in_;
  std::size_t joined_ = 0;  // guarded by the meeting
  std::mutex mutex_;        // guards the rest
  std::condition_variable changed_;
  std::size_t arrived_ = 0, meetings_ = 0;
  Result<void> outcome_;
};

/// The collectives of one group, one after the other.
class DeviceMeeting {
 public:
  explicit DeviceMeeting(DeviceGroup group) : group_(std::move(group)) {}
  const DeviceGroup& group() const { return group_; }

  /// The collective that a member begins: the same for all members here. Each of them must call
  /// meet() before it joins the next one.
  std::shared_ptr<DeviceRound> join(std::size_t member, const GroupCall& call, const void* in);

 private:
  const DeviceGroup group_;
  std::mutex mutex_;
  std::shared_ptr<DeviceRound> open_;
};

}  // namespace meshard::internal
