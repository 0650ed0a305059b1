// One call of a loaded program, while it is made.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "meshard/pjrt/buffer_list.h"
#include "meshard/pjrt/internal/released_buffers.h"
#include "meshard/pjrt/loaded_executable.h"

struct PJRT_Event;

namespace meshard::pjrt {

/// One launch in progress, on devices [first, first + count) of the program.
struct LoadedExecutable::Call {
  // Constructors, because the compiler zeroes a large aggregate with `rep stos`, which takes
  // longer to start than the stores take.
  Call(std::span<const BufferList* const> arguments, std::span<BufferList> outputs,
       const LaunchOptions& given, std::string_view caller)
      : has_lists(true), lists(arguments), output_lists(outputs), options(given), place(caller) {}
  Call(std::span<const Buffer* const> arguments, std::span<Buffer> outputs,
       const LaunchOptions& given, std::string_view caller)
      : buffers(arguments), output_buffers(outputs), options(given), place(caller) {}
  Call(std::span<const BufferView> arguments, std::span<Buffer> outputs, const LaunchOptions& given,
       std::string_view caller)
      : has_views(true), views(arguments), output_buffers(outputs), options(given), place(caller) {}

  // Either lists or, device-major, single buffers, or, for one device, views.
  bool has_lists = false, has_views = false;
  std::span<const BufferList* const> lists = {};
  std::span<BufferList> output_lists = {};
  std::span<const Buffer* const> buffers = {};
  std::span<const BufferView> views = {};
  std::span<Buffer> output_buffers = {};
  const LaunchOptions& options;
  std::size_t first = 0;
  std::size_t count = 0;
  /// Launches each device by its own plugin call, which names the device.
  bool device_by_device = false;
  std::string_view place = {};

  int id = 0;
  std::uint64_t number = 0;  // LaunchRecord::number
  std::uint32_t mark = 0;    // marks the buffers that this launch consumes; 0: none
  std::span<PJRT_Buffer*> raw_arguments = {};
  std::span<PJRT_Buffer*> raw_outputs = {};
  std::span<PJRT_Event*> events = {};
  internal::ReleasedBatch* released = nullptr;  // to be destroyed device by device on the way

  /// The owners of parameter i: one list, or a buffer on each of `count` devices.
  std::size_t owners() const { return has_lists ? 1 : count; }
  const internal::BufferState& state(std::size_t i, std::size_t owner,
                                     std::size_t per_device) const {
    return has_lists ? lists[i]->state_ : buffers[owner * per_device + i]->own_;
  }
  void set_life(std::size_t i, std::size_t owner, std::size_t per_device,
                internal::BufferState::Life life) const {
    if (has_lists)
      lists[i]->set_life(life);
    else
      buffers[owner * per_device + i]->set_life(life);
  }
  // Returns the bytes on each device that the caller has to count: those of lists.
  std::int64_t donate(std::size_t i, std::size_t owner, std::size_t per_device) const {
    if (!has_lists) {
      buffers[owner * per_device + i]->set_life(internal::BufferState::kDonated);
      return 0;
    }
    lists[i]->set_life_uncounted(internal::BufferState::kDonated);
    return static_cast<std::int64_t>(lists[i]->bytes_);
  }
  bool plugin_says_deleted(std::size_t i, std::size_t owner, std::size_t per_device) const {
    return has_lists ? lists[i]->plugin_says_deleted()
                     : buffers[owner * per_device + i]->plugin_says_deleted().value_or(true);
  }

  // Whether its devices may wait for each other; if so, all devices must receive the launches in
  // the same order.
  bool may_meet(const ExecutableSignature& signature) const {
    return count > 1 && (!device_by_device || signature.has_collectives);
  }
};

}  // namespace meshard::pjrt
