// Control of the faulty plugin from a test: C functions that the library exports.
//
// The faulty plugin wraps a real one, whose path is in MESHARD_FAULTY_PLUGIN. It forwards every
// call, except that calls selected by a fault fail, are late, or have events that fail or never
// fire. Entries whose names end in `_Destroy`, PJRT_Error_* and entries without a result are
// counted but never fail: a failing destructor would not test its caller.
//
// With MESHARD_FAULTY_AS=PLATFORM,KIND (`cuda,NVIDIA H100 80GB HBM3`), a real plugin of CPUs
// appears as that platform, with one device of that kind; its memories and values are those of the
// real one.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// What happens to the call that a fault selects.
enum FaultKind {
  kFaultNone = 0,
  /// It fails without reaching the real plugin; its outputs are filled with garbage.
  kFaultError = 1,
  /// It reaches the real plugin only after `milliseconds`.
  kFaultLate = 2,
  /// It succeeds, but the event that it returns carries an error. The error applies to the data of
  /// the event, so that a buffer of this launch or transfer reports the same error wherever it is
  /// used. Calls that return no event do not match.
  kFaultErrorEvent = 3,
  /// It succeeds, but the event that it returns fires only after faulty_release_events().
  kFaultStuckEvent = 4,
  /// A launch on several devices fails on one of them (`device`; -1: the first), and the others
  /// wait for it in a collective: their events, and those of their results, fire only after
  /// faulty_release_events(). Launches on one device and other entries do not match.
  kFaultDeserted = 5,
};

/// Selects a call, and specifies what happens to it.
struct Fault {
  enum FaultKind kind;
  /// The number of the matching call, from 1, counted from when the fault was set.
  int call;
  /// Only calls of this entry match (`PJRT_Buffer_ReadyEvent`). Null: all that can fail.
  const char* entry;
  /// Only calls for this device id match. In a launch on several devices, only this device's part
  /// is faulty (with kFaultError, all of it). -1: all devices.
  int device;
  /// A PJRT_Error_Code and the text of the error.
  int code;
  const char* message;
  /// The delay of a late call.
  int milliseconds;
};

/// Sets the fault from now on. Null: none. The initial fault is MESHARD_FAULT:
/// `kind=error,call=3,entry=PJRT_Client_Compile,device=1,code=13,ms=20,message=any text`, where
/// kind is error, late, error_event, stuck_event or deserted, and message comes last.
void faulty_set(const struct Fault* fault);
/// The number of calls that the fault has changed: 0 or 1.
int faulty_hits(void);
/// The number of calls that have matched the fault so far, whether they were changed or not.
int faulty_matches(void);
/// The name of the last entry that was changed; "" if none.
const char* faulty_hit_entry(void);
/// Fires all events that were held back, without an error.
void faulty_release_events(void);

/// The number of calls that can fail, since the last faulty_forget_calls().
int faulty_calls(void);
/// The entry of the k-th of these calls, from 1; "" beyond the last.
const char* faulty_call_name(int k);
/// Whether the k-th of these calls returned an event that can carry an error.
int faulty_call_gives_event(int k);
void faulty_forget_calls(void);
/// The number of calls of one entry, even one that never fails, since the library was loaded.
int faulty_call_count(const char* entry);
/// The number of launches that the real plugin has accepted, since the library was loaded.
int faulty_launches(void);
/// The number of live events and errors of the faulty plugin itself.
int faulty_live_objects(void);

#ifdef __cplusplus
}
#endif
