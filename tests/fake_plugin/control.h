// Control of the fake plugin from a test: C functions that the library exports (find them with
// dlsym, or with FakeControl in load_fake.h).
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the fake does when a call reaches it that would break a real plugin.
enum FakeTrap {
  /// It answers with an error and counts the call: an honest, better plugin.
  kFakeHonest = 0,
  /// After an error in a launch on several devices, no later one ever completes.
  kFakeWedge = 1,
  /// It ends the process.
  kFakeAbort = 2,
};

/// Everything below back to the beginning: platform `fake`, API as in our header, no delays, no
/// errors, counters 0. Call it while no client lives.
void fake_reset(void);
void fake_set_trap(int trap);
/// The platform name that new clients report: `cpu` switches the CPU's launch rules on.
void fake_set_platform(const char* name);
/// The API version in the table.
void fake_set_version(int major, int minor);
/// The size of the table: entries behind it are not there.
void fake_set_table_size(size_t bytes);
/// Takes an entry out of the table.
void fake_remove_entry(const char* entry);
/// The order of the devices that a client lists: last one first.
void fake_reverse_devices(int on);
/// New clients' devices are of this kind and stand in grids of three sizes, x first, with so many
/// devices a chip; what does not fit is in the next slice. `wrap`: which directions close.
void fake_set_grid(const char* kind, const int* sizes, const int* wrap, int cores);
/// The k-th call (from 1, counted from now) of an entry fails.
void fake_fail_at(const char* entry, int k, int code, const char* message);
/// Each call of an entry takes so long.
void fake_set_delay(const char* entry, int microseconds);
/// A launch completes so long after the call; 0: before it returns.
void fake_set_run_time(int microseconds);
/// Launches fail with this error once they run (their events tell), 0: none.
void fake_fail_runs(int code);

/// Calls of an entry since the reset.
int fake_call_count(const char* entry);
/// Calls that would break a real plugin, since the reset.
int fake_invalid_calls(void);
/// Most launches that were under way at once.
int fake_most_in_flight(void);
/// Most threads that were inside Execute at once.
int fake_most_launchers(void);
/// The launch id of the i-th Execute call; -1 if there was none.
int fake_launch_id(int i);
/// How many rows the argument matrix of the i-th Execute call had: one for each device; -1 if there
/// was none.
int fake_launch_rows(int i);
/// Objects of the fake that are alive (buffers, events, executables, clients): 0 when all was
/// freed.
int fake_live_objects(void);

#ifdef __cplusplus
}
#endif
