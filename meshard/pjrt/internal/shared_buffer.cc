// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/internal/shared_buffer.h"

#include <utility>

#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt::internal {
namespace {

// The element for `raw` in the list from `begin` to before `end`; null if there is none.
SharedBuffer* find_shared(SharedBuffer* begin, const SharedBuffer* end, const PJRT_Buffer* raw) {
  while (begin != end && begin->raw != raw) begin = begin->next;
  return begin == end ? nullptr : begin;
}

}  // namespace

Result<void> SharedBuffer::hold() {
  std::lock_guard lock(external);
  MESHARD_PJRT_QUERY(api, PJRT_Buffer_IncreaseExternalReferenceCount, args, buffer, raw);
  references.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void SharedBuffer::give_back() noexcept {
  {
    std::lock_guard lock(external);
    MESHARD_PJRT_ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, args);
    args.buffer = raw;
    (void)MESHARD_PJRT_CALL(api, PJRT_Buffer_DecreaseExternalReferenceCount, args);
  }
  drop();
}

void SharedBuffer::drop() noexcept {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  destroy(api, raw);
  delete this;
}

SharedBuffer* share(const BufferState& state, PJRT_Buffer* raw) {
  SharedBuffer* first = state.shared.load(std::memory_order_acquire);
  if (SharedBuffer* known = find_shared(first, nullptr, raw)) return known;
  auto* fresh = new SharedBuffer{state.client->api, raw};
  fresh->next = first;
  while (!state.shared.compare_exchange_weak(first, fresh, std::memory_order_acq_rel)) {
    // Another thread added elements, perhaps for the same buffer.
    if (SharedBuffer* known = find_shared(first, fresh->next, raw)) {
      delete fresh;
      return known;
    }
    fresh->next = first;
  }
  return fresh;
}

void destroy_buffers(const PJRT_Api* api, BufferState& state,
                     std::span<PJRT_Buffer* const> buffers) noexcept {
  SharedBuffer* shared = state.shared.exchange(nullptr, std::memory_order_acq_rel);
  for (PJRT_Buffer* buffer : buffers)
    if (shared == nullptr || find_shared(shared, nullptr, buffer) == nullptr) destroy(api, buffer);
  while (shared != nullptr) std::exchange(shared, shared->next)->drop();
}

}  // namespace meshard::pjrt::internal
