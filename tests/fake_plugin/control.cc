#include "tests/fake_plugin/control.h"

#include <string_view>

#include "tests/fake_plugin/state.h"

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void fake_reset() {
  fake::reset_table();
  std::lock_guard lock(fake::control().mutex);
  fake::Control& control = fake::control();
  control.trap = kFakeHonest;
  control.platform = "fake";
  control.reverse_devices = false;
  control.grid.reset();
  control.run_time = control.fail_runs = control.invalid_calls = 0;
  control.entries.clear();
  control.launch_ids.clear();
  control.launch_rows.clear();
  fake::in_flight = fake::most_in_flight = fake::most_launchers = 0;
}
EXPORT void fake_set_trap(int trap) { fake::control().trap = trap; }
EXPORT void fake_set_platform(const char* name) { fake::control().platform = name; }
EXPORT void fake_set_version(int major, int minor) {
  fake::table().pjrt_api_version.major_version = major;
  fake::table().pjrt_api_version.minor_version = minor;
}
EXPORT void fake_set_table_size(size_t bytes) { fake::table().struct_size = bytes; }
EXPORT void fake_remove_entry(const char* entry) {
  std::string_view name(entry);
#define REMOVE(Name) \
  if (name == #Name) fake::table().Name = nullptr
  REMOVE(PJRT_Executable_Serialize);
  REMOVE(PJRT_Executable_OptimizedProgram);
  REMOVE(PJRT_Buffer_CopyToDevice);
  REMOVE(PJRT_Client_CreateUninitializedBuffer);
  REMOVE(PJRT_Executable_Fingerprint);
#undef REMOVE
}
EXPORT void fake_reverse_devices(int on) { fake::control().reverse_devices = on != 0; }
EXPORT void fake_set_grid(const char* kind, const int* sizes, const int* wrap, int cores) {
  fake::control().grid = {{sizes[0], sizes[1], sizes[2]}, {wrap[0], wrap[1], wrap[2]}, cores, kind};
}
EXPORT void fake_fail_at(const char* entry, int k, int code, const char* message) {
  std::lock_guard lock(fake::control().mutex);
  auto& state = fake::control().entries[entry];
  state.fail_in = k;
  state.code = code;
  state.message = message;
}
EXPORT void fake_set_delay(const char* entry, int microseconds) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().entries[entry].delay = microseconds;
}
EXPORT void fake_set_run_time(int microseconds) { fake::control().run_time = microseconds; }
EXPORT void fake_fail_runs(int code) { fake::control().fail_runs = code; }
EXPORT int fake_call_count(const char* entry) {
  std::lock_guard lock(fake::control().mutex);
  auto found = fake::control().entries.find(entry);
  return found == fake::control().entries.end() ? 0 : found->second.calls;
}
EXPORT int fake_invalid_calls() { return fake::control().invalid_calls; }
EXPORT int fake_most_in_flight() { return fake::most_in_flight; }
EXPORT int fake_most_launchers() { return fake::most_launchers; }
EXPORT int fake_launch_id(int i) {
  std::lock_guard lock(fake::control().mutex);
  auto& ids = fake::control().launch_ids;
  return i >= 0 && i < static_cast<int>(ids.size()) ? ids[static_cast<size_t>(i)] : -1;
}
EXPORT int fake_launch_rows(int i) {
  std::lock_guard lock(fake::control().mutex);
  auto& rows = fake::control().launch_rows;
  return i >= 0 && i < static_cast<int>(rows.size()) ? rows[static_cast<size_t>(i)] : -1;
}
EXPORT int fake_live_objects() { return fake::live_objects; }
}
