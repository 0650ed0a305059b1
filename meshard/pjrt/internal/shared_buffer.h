// Buffers whose ownership is shared with views of their bytes.
#pragma once
#include <atomic>
#include <mutex>
#include <span>

#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/internal/c_api.h"

namespace meshard::pjrt::internal {

/// A plugin's buffer with several owners: the Buffer or BufferList, and the views of its bytes. An
/// element of the list BufferState::shared.
struct SharedBuffer {
  const PJRT_Api* api;
  PJRT_Buffer* raw;
  SharedBuffer* next = nullptr;  // fixed once in the list
  std::atomic<int> references{1};
  // Needed because the plugin does not guard its list of a buffer's external references.
  std::mutex external{};

  Result<void> hold();
  void give_back() noexcept;
  void drop() noexcept;
};

/// The element for a buffer of `state`, added if there is none. Several threads may call it.
SharedBuffer* share(const BufferState& state, PJRT_Buffer* raw);
/// Destroys the buffers that are not shared, and drops the owner's reference on the others.
/// @pre `state` has no other buffers
void destroy_buffers(const PJRT_Api* api, BufferState& state,
                     std::span<PJRT_Buffer* const> buffers) noexcept;

}  // namespace meshard::pjrt::internal
