#include "tests/fake_plugin/state.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_plugin/clock.h"
#include "tests/fake_plugin/control.h"

PJRT_Buffer::~PJRT_Buffer() {
  if (on_release) on_release();
  fake::external_references -= external;
}

PJRT_Device* PJRT_Client::find(int64_t id) const {
  for (PJRT_Device* device : devices)
    if (device->description.id == id) return device;
  return nullptr;
}

int64_t PJRT_LoadedExecutable::logical(const PJRT_Device* device) const {
  return std::find(all_devices.begin(), all_devices.end(), device) - all_devices.begin();
}

namespace fake {

std::atomic<int> live_objects{0}, external_references{0};
std::atomic<int> in_flight{0}, most_in_flight{0}, launchers{0}, most_launchers{0};

Counted::Counted() { ++live_objects; }
Counted::~Counted() { --live_objects; }

void raise_to(std::atomic<int>& most, int value) {
  int seen = most;
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

void Moment::finish(int error_code, std::string error_message) {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex);
    if (done) return;
    done = true;
    code = error_code;
    message = std::move(error_message);
    calls.swap(callbacks);
  }
  changed.notify_all();
  for (auto& call : calls) call();
}

void Moment::wait() {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
  simulated_clock().wait_for(*this);
}

Bytes::Bytes(PJRT_Device* on, size_t bytes)
    : own(bytes), data(own.data()), size(bytes), device(on) {
  if (device == nullptr) return;
  int64_t now = device->bytes_in_use += static_cast<int64_t>(size);
  int64_t seen = device->peak_bytes;
  while (seen < now && !device->peak_bytes.compare_exchange_weak(seen, now)) {
  }
}

Bytes::Bytes(PJRT_Device* on, char* host, size_t bytes, bool may_write)
    : data(host), size(bytes), writable(may_write), device(on) {}

Bytes::~Bytes() {
  if (device != nullptr && !own.empty()) device->bytes_in_use -= static_cast<int64_t>(size);
  // Makes a use of released memory visible, if the plugin was allowed to write it.
  if (in_place() && writable) memset(data, 0xA5, size);
  if (host_released) host_released->finish();
}

BytesPtr Bytes::copy(PJRT_Device* to) const {
  auto made = std::make_shared<Bytes>(to, size);
  if (size > 0) memcpy(made->data, data, size);
  return made;
}

MomentPtr past() {
  auto moment = std::make_shared<Moment>();
  moment->done = true;
  return moment;
}

PJRT_Event* event_of(MomentPtr moment) {
  auto* event = new PJRT_Event;
  event->moment = std::move(moment);
  return event;
}

Control& control() {
  static auto* instance = new Control;
  return *instance;
}

PJRT_Error* fail(int code, std::string message) {
  auto* error = new PJRT_Error;
  error->code = code;
  error->message = std::move(message);
  return error;
}

PJRT_Error* enter(const char* entry) {
  int delay = 0;
  PJRT_Error* error = nullptr;
  {
    std::lock_guard lock(control().mutex);
    Control::Entry& state = control().entries[entry];
    ++state.calls;
    delay = state.delay;
    if (state.fail_in > 0 && --state.fail_in == 0) error = fail(state.code, state.message);
    Control::Entry& any = control().any_entry;
    ++any.calls;
    if (any.fail_in > 0 && --any.fail_in == 0 && error == nullptr)
      error = fail(any.code, any.message);
  }
  if (delay > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay));
  return error;
}

PJRT_Error* invalid(std::string message) {
  std::lock_guard lock(control().mutex);
  ++control().invalid_calls;
  if (control().trap == kFakeAbort) {
    std::fprintf(stderr, "fake plugin: invalid call: %s\n", message.c_str());
    std::abort();
  }
  return fail(3, std::move(message));
}

PJRT_Error* check_local(const PJRT_Device* device) {
  if (device == nullptr) return invalid("null device");
  return device->addressable ? nullptr : invalid("a device of another process");
}

PJRT_Error* fate_of_compile() {
  const char* fate = getenv("MESHARD_FAKE_ON_COMPILE");
  if (fate == nullptr) return nullptr;
  fprintf(stderr, "fake compiler: %s\n", fate);
  if (std::string_view(fate) == "abort") abort();
  if (std::string_view(fate) == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  char* words = nullptr;
  long code = strtol(fate, &words, 10);
  return code > 0 ? fail(static_cast<int>(code), words + 1) : nullptr;
}

}  // namespace fake
