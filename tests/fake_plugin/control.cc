#include "tests/fake_plugin/control.h"

#include <functional>
#include <string_view>

#include "tests/fake_plugin/clock.h"
#include "tests/fake_plugin/state.h"

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void fake_hold_runs(int on) {
  std::vector<std::function<void()>> held;
  {
    std::lock_guard lock(fake::control().mutex);
    fake::control().hold_runs = on != 0;
    if (on == 0) held.swap(fake::control().held);
  }
  for (const auto& end : held) end();
}
EXPORT void fake_reset() {
  fake::reset_table();
  fake_hold_runs(0);
  std::lock_guard lock(fake::control().mutex);
  fake::Control& control = fake::control();
  control.trap = kFakeHonest;
  control.platform = "fake";
  control.reverse_devices = false;
  control.grid.reset();
  control.run_time = control.fail_runs = control.invalid_calls = 0;
  control.entries.clear();
  control.any_entry = {};
  control.shards.clear();
  control.programs.clear();
  fake::simulated_clock().start(false);
  control.process = control.ready_fail_in = control.transfer_fail_in = 0;
  control.processes = 1;
  control.zero_copy = false;
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
  auto& state = entry == nullptr ? fake::control().any_entry : fake::control().entries[entry];
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
EXPORT void fake_fail_shard(int launch, int device, int code) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().shards.push_back({launch, device, code, 0});
}
EXPORT void fake_delay_shard(int launch, int device, int microseconds) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().shards.push_back({launch, device, 0, microseconds});
}
EXPORT void fake_fail_program(const char* program, int k, int code) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().programs[program] = {k, code};
}
EXPORT void fake_simulate(int on) { fake::simulated_clock().start(on != 0); }
EXPORT void fake_set_duration(const char* program, double microseconds) {
  fake::simulated_clock().set_duration(program, microseconds);
}
EXPORT void fake_set_copy_time(double microseconds, double microseconds_per_byte) {
  fake::simulated_clock().set_copy_time(microseconds, microseconds_per_byte);
}
EXPORT void fake_set_launch_time(double microseconds) {
  fake::simulated_clock().set_launch_time(microseconds);
}
EXPORT double fake_host_time() { return fake::simulated_clock().host_time(); }
EXPORT int fake_run(int i, FakeRun* run) {
  return fake::simulated_clock().find_run(i, *run) ? 1 : 0;
}
EXPORT void fake_fail_ready_event(int k, int code) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().ready_fail_in = k;
  fake::control().ready_code = code;
}
EXPORT void fake_fail_transfer(int k, int code) {
  std::lock_guard lock(fake::control().mutex);
  fake::control().transfer_fail_in = k;
  fake::control().transfer_code = code;
}
EXPORT void fake_set_zero_copy(int on) { fake::control().zero_copy = on != 0; }
EXPORT void fake_set_processes(int processes, int mine) {
  fake::control().processes = processes;
  fake::control().process = mine;
}
EXPORT int fake_external_references() { return fake::external_references; }
EXPORT int fake_call_count(const char* entry) {
  std::lock_guard lock(fake::control().mutex);
  if (entry == nullptr) return fake::control().any_entry.calls;
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
