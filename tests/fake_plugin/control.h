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
/// The k-th call (from 1, counted from now) of an entry fails, and leaves garbage where its results
/// belong; of all entries together if `entry` is null. Destructors and PJRT_Error_* never fail.
void fake_fail_at(const char* entry, int k, int code, const char* message);
/// Each call of an entry takes so long.
void fake_set_delay(const char* entry, int microseconds);
/// A launch completes so long after the call; 0: before it returns.
void fake_set_run_time(int microseconds);
/// Launches fail with this error once they run (their events tell), 0: none.
void fake_fail_runs(int code);
/// The part of one device of the launch-th launch from now (from 1) fails once it runs.
void fake_fail_shard(int launch, int device, int code);
/// The part of one device of that launch takes so much longer than the others; less than 0: until
/// fake_hold_runs(0).
void fake_delay_shard(int launch, int device, int microseconds);
/// While on, launches are accepted and do not complete; those that were held complete when it is
/// switched off.
void fake_hold_runs(int on);
/// The event that the k-th PJRT_Buffer_ReadyEvent from now (from 1) gives carries this error; the
/// buffer is right.
void fake_fail_ready_event(int k, int code);
/// The k-th transfer from the host from now (from 1) fails: its buffer holds no value, and its
/// ready event has this error.
void fake_fail_transfer(int k, int code);
/// Host memory is used in place where the semantics allow it and it is aligned to 64 bytes; what
/// was given for writing is overwritten with garbage before it is released.
void fake_set_zero_copy(int on);
/// New clients are process `mine` of so many, with equal parts of the devices.
void fake_set_processes(int processes, int mine);

/// Calls of an entry since the reset; null: of all entries that can fail.
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
/// External references on buffers that are held now.
int fake_external_references(void);
/// Objects of the fake that are alive (buffers, events, executables, clients): 0 when all was
/// freed.
int fake_live_objects(void);

#ifdef __cplusplus
}
#endif
