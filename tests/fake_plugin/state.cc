#include "tests/fake_plugin/state.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/fake_plugin/control.h"

PJRT_Buffer::~PJRT_Buffer() {
  if (on_release) on_release();
  if (host_released) host_released->finish();
}

PJRT_Device* PJRT_Client::find(int64_t id) const {
  for (PJRT_Device* device : devices)
    if (device->description.id == id) return device;
  return nullptr;
}

namespace fake {

std::atomic<int> live_objects{0};
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
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return done; });
}

MomentPtr past() {
  auto moment = std::make_shared<Moment>();
  moment->done = true;
  return moment;
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
