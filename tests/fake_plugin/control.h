// Control of the fake plugin from a test: C functions that the library exports (find them with
// dlsym, or with FakeControl in load_fake.h).
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the fake plugin does with a call that would break a real plugin.
enum FakeTrap {
  /// It returns an error and counts the call, as a correct plugin would.
  kFakeHonest = 0,
  /// After an error in a launch on several devices, no later launch completes.
  kFakeWedge = 1,
  /// It aborts the process.
  kFakeAbort = 2,
};

/// Resets all settings below: platform `fake`, API version of our header, no delays, no errors,
/// counters 0. Call it only while no client exists.
void fake_reset(void);
void fake_set_trap(int trap);
/// The platform name that new clients report. `cpu` enables the launch rules of the CPU plugin.
void fake_set_platform(const char* name);
/// The API version in the table.
void fake_set_version(int major, int minor);
/// The size of the table. Entries beyond it are missing.
void fake_set_table_size(size_t bytes);
/// Removes an entry from the table.
void fake_remove_entry(const char* entry);
/// Whether a client lists its devices in reverse order.
void fake_reverse_devices(int on);
/// New clients' devices are of this kind and form grids of three sizes, x fastest, with `cores`
/// devices per chip. Devices that do not fit are in the next slice. `wrap`: which directions are
/// closed.
void fake_set_grid(const char* kind, const int* sizes, const int* wrap, int cores);
/// The k-th call (from 1, counted from now) of an entry fails and fills its results with garbage.
/// If `entry` is null, calls of all entries are counted together. Destructors and PJRT_Error_*
/// never fail.
void fake_fail_at(const char* entry, int k, int code, const char* message);
/// Each call of an entry takes this long.
void fake_set_delay(const char* entry, int microseconds);
/// A launch completes this long after the call. 0: before the call returns.
void fake_set_run_time(int microseconds);
/// Launches fail with this error once they run (reported through their events). 0: none.
void fake_fail_runs(int code);
/// One device's part of the launch-th launch from now (from 1) fails once it runs.
void fake_fail_shard(int launch, int device, int code);
/// One device's part of that launch takes this much longer than the others. If negative: until
/// fake_hold_runs(0).
void fake_delay_shard(int launch, int device, int microseconds);
/// While on, launches are accepted but do not complete. Switching it off completes them.
void fake_hold_runs(int on);
/// The event that the k-th PJRT_Buffer_ReadyEvent from now (from 1) returns carries this error; the
/// buffer is valid.
void fake_fail_ready_event(int k, int code);
/// The k-th transfer from the host from now (from 1) fails: its buffer has no value, and its ready
/// event carries this error.
void fake_fail_transfer(int k, int code);
/// Whether host memory is used in place if the semantics allow it and it is aligned to 64 bytes.
/// Memory that the plugin may write is overwritten with garbage before it is released.
void fake_set_zero_copy(int on);
/// New clients are process `mine` of `processes`, with equal numbers of devices.
void fake_set_processes(int processes, int mine);

/// Starts a simulated clock at 0 (clock.h), or stops it. While it runs, programs and copies take
/// simulated time, nothing really waits, and a launch or copy whose argument has failed fails with
/// the same error. A callback on an event counts as a wait. All times are in microseconds. Start it
/// only while nothing is in flight.
void fake_simulate(int on);
/// Programs of this name take this long. Default: 0.
void fake_set_duration(const char* program, double microseconds);
/// Copies between devices take this long, and this much for each byte. Default: 0.
void fake_set_copy_time(double microseconds, double microseconds_per_byte);
/// Each launch takes the host this long. Default: 0.
void fake_set_launch_time(double microseconds);
/// The host's time.
double fake_host_time(void);

/// What one device has done for one launch.
struct FakeRun {
  const char* program; /* valid until the clock is started again */
  int device;
  double begin, end;
};
/// Run `i` since the clock was started, in the order of the launches. Returns 0 if there is none.
int fake_run(int i, struct FakeRun* run);

/// The k-th launch from now (from 1) of the programs of this name fails once it runs.
void fake_fail_program(const char* program, int k, int code);

/// Calls of an entry since the reset. Null: of all entries that can fail.
int fake_call_count(const char* entry);
/// Calls since the reset that would break a real plugin.
int fake_invalid_calls(void);
/// The maximum number of launches in flight at the same time.
int fake_most_in_flight(void);
/// The maximum number of threads inside Execute at the same time.
int fake_most_launchers(void);
/// The launch id of the i-th Execute call; -1 if there was none. Only the first 100,000 since the
/// reset are known.
int fake_launch_id(int i);
/// The number of rows of the i-th Execute call's argument matrix, one per device; -1 if there was
/// no such call; known as long.
int fake_launch_rows(int i);
/// The number of external references on buffers that are currently held.
int fake_external_references(void);
/// The number of live objects of the fake plugin (buffers, events, executables, clients); 0 when
/// all were freed.
int fake_live_objects(void);

#ifdef __cplusplus
}
#endif
