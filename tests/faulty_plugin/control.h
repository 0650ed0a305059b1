// Control of the faulty plugin from a test: C functions that the library exports.
//
// The faulty plugin stands in front of a real one, whose path is in MESHARD_FAULTY_PLUGIN. It
// passes every call on, and makes those fail, come late or lose their events that a fault names.
// Entries whose names end in `_Destroy`, PJRT_Error_* and entries without a result are counted, but
// never made to fail: a failing destructor says nothing about its caller.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// What happens to the call that a fault names.
enum FaultKind {
  kFaultNone = 0,
  /// It fails without reaching the real plugin; its outputs are filled with garbage.
  kFaultError = 1,
  /// It reaches the real plugin only after some milliseconds.
  kFaultLate = 2,
  /// It succeeds, but the event that it gives carries an error: of the data that the event stands
  /// for, so that a buffer of this launch or transfer gives the same error wherever it is used.
  /// Calls that give no event do not match.
  kFaultErrorEvent = 3,
  /// It succeeds, but the event that it gives fires only after faulty_release_events().
  kFaultStuckEvent = 4,
  /// A launch on several devices fails on one of them (`device`; -1: the first), and the others
  /// wait for it in a collective: their events, and those of their results, fire only after
  /// faulty_release_events(). Launches on one device and other entries do not match.
  kFaultDeserted = 5,
};

/// Which call, and what happens to it.
struct Fault {
  enum FaultKind kind;
  /// The call-th matching one, counted from when the fault was set; from 1.
  int call;
  /// Only calls of this entry match (`PJRT_Buffer_ReadyEvent`); null: all that can fail.
  const char* entry;
  /// Only calls for this device match, by its id; of a launch on several devices only its part is
  /// faulty (for kFaultError all of it). -1: all devices.
  int device;
  /// A PJRT_Error_Code and the text of the error.
  int code;
  const char* message;
  /// How late a late call is.
  int milliseconds;
};

/// Sets the fault from now on; null: none. The initial one is MESHARD_FAULT:
/// `kind=error,call=3,entry=PJRT_Client_Compile,device=1,code=13,ms=20,message=any text`, where
/// kind is error, late, error_event, stuck_event or deserted and message comes last.
void faulty_set(const struct Fault* fault);
/// How many calls the fault has changed: 0 or 1.
int faulty_hits(void);
/// How many calls matched the fault so far, whether they were changed or not.
int faulty_matches(void);
/// The name of the entry that was changed last; "" if none.
const char* faulty_hit_entry(void);
/// Lets all events fire that were held back, with no error.
void faulty_release_events(void);

/// Calls that can fail, since the last faulty_forget_calls().
int faulty_calls(void);
/// The entry of the k-th of them, from 1; "" beyond the last.
const char* faulty_call_name(int k);
/// Whether the k-th of them gave an event that can carry an error.
int faulty_call_gives_event(int k);
void faulty_forget_calls(void);
/// Calls of one entry, of those that never fail too, since the library was loaded.
int faulty_call_count(const char* entry);
/// Launches that the real plugin has accepted, since the library was loaded.
int faulty_launches(void);
/// Events and errors of the faulty plugin itself that are alive.
int faulty_live_objects(void);

#ifdef __cplusplus
}
#endif
