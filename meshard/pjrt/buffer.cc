// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/buffer.h"

#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/shared_buffer.h"

namespace meshard::pjrt {

using internal::BufferState;

void Buffer::release() noexcept {
  if (raw_ == nullptr) return;
  internal::destroy_buffers(own_.client->api, own_, {&raw_, 1});
  set_life(BufferState::kEmpty);  // before the client and its devices may go
  raw_ = nullptr;
  internal::drop_reference(std::exchange(own_.client, nullptr));
}

Result<void> Buffer::delete_now() {
  MESHARD_RETURN_IF_ERROR(check_live("delete_now"));
  // Before the call, so that no other thread uses the buffer during it.
  set_life(BufferState::kDeleted);
  MESHARD_PJRT_ARGS(PJRT_Buffer_Delete, args);
  args.buffer = raw_;
  Result<void> done = MESHARD_PJRT_CALL(own_.client->api, PJRT_Buffer_Delete, args);
  if (!done.ok() && !plugin_says_deleted().value_or(true)) set_life(BufferState::kLive);
  return done;
}

}  // namespace meshard::pjrt
