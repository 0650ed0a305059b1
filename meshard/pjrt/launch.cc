// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/launch.h"

#include "meshard/pjrt/event.h"
#include "meshard/pjrt/internal/client_state.h"

namespace meshard::pjrt {
namespace internal {

Result<void> LaunchRecord::await() {
  Result<void> outcome;
  for (PJRT_Event* event : events) {
    MESHARD_PJRT_ARGS(PJRT_Event_Await, args);
    args.event = event;
    auto one = take_error(api, api->PJRT_Event_Await(&args), "PJRT_LoadedExecutable_Execute");
    if (!one.ok() && outcome.ok()) outcome = std::move(one);
  }
  done.store(true, std::memory_order_release);
  return outcome;
}

void drop_launch(LaunchRecord* record) noexcept {
  if (record->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (PJRT_Event* event : record->events) destroy_event(record->api, event);
  delete record;
}

}  // namespace internal

Result<void> Launch::await() const {
  return record_ == nullptr ? Result<void>() : record_->await();
}

Result<bool> Launch::is_ready() const {
  if (record_ == nullptr || record_->done.load(std::memory_order_acquire)) return true;
  for (PJRT_Event* event : record_->events) {
    MESHARD_PJRT_ARGS(PJRT_Event_IsReady, args);
    args.event = event;
    MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(record_->api, PJRT_Event_IsReady, args));
    if (!args.is_ready) return false;
  }
  return true;
}

Result<void> Launch::on_ready(std::size_t device,
                              std::function<void(const Result<void>&)> callback) const {
  if (record_ == nullptr) {
    callback({});
    return {};
  }
  if (device >= record_->events.size())
    return Error(ErrorCode::kOutOfRange, cat("[launch] device number ", device, " of a launch on ",
                                             record_->events.size(), " devices"));
  return internal::call_when_ready(record_->api, record_->events[device], std::move(callback));
}

int Launch::id() const { return record_ == nullptr ? 0 : record_->id; }

}  // namespace meshard::pjrt
