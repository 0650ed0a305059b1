// A PJRT plugin that wraps a real one: it counts calls, and makes one of them fail. See control.h.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/faulty_plugin/state.h"

#define EXPORT __attribute__((visibility("default")))

namespace faulty {
namespace {

enum class Form { kExempt, kGetter, kCall };

constexpr unsigned char kGarbage = 0xA5;

template <class T>
void spoil(T& output) {
  std::memset(static_cast<void*>(&output), kGarbage, sizeof output);
}

// Where the call returns an event that stands for data; nullptr if it returns none.
template <class Args>
PJRT_Event** event_of(Args* args) {
  if constexpr (requires { args->done_with_host_buffer; })
    return &args->done_with_host_buffer;
  else if constexpr (requires { args->done_with_h2d_transfer; })
    return &args->done_with_h2d_transfer;
  else if constexpr (requires { args->transfer_complete; })
    return &args->transfer_complete;
  else if constexpr (std::is_same_v<Args, PJRT_Buffer_ReadyEvent_Args> ||
                     std::is_same_v<Args, PJRT_Buffer_ToHostBuffer_Args> ||
                     std::is_same_v<Args, PJRT_Buffer_CopyRawToHost_Args>)
    return &args->event;
  else
    return nullptr;
}

// The buffer whose value the call reads; nullptr if none.
template <class Args>
PJRT_Buffer* source_of(Args* args) {
  if constexpr (std::is_same_v<Args, PJRT_Buffer_ToHostBuffer_Args>)
    return args->src;
  else if constexpr (std::is_same_v<Args, PJRT_Buffer_ReadyEvent_Args> ||
                     std::is_same_v<Args, PJRT_Buffer_CopyRawToHost_Args> ||
                     std::is_same_v<Args, PJRT_Buffer_CopyToDevice_Args> ||
                     std::is_same_v<Args, PJRT_Buffer_CopyToMemory_Args>)
    return args->buffer;
  else
    return nullptr;
}

// The buffer that the call creates; nullptr if none.
template <class Args>
PJRT_Buffer** result_of(Args* args) {
  if constexpr (std::is_same_v<Args, PJRT_Client_BufferFromHostBuffer_Args> ||
                std::is_same_v<Args, PJRT_Client_CreateViewOfDeviceBuffer_Args> ||
                std::is_same_v<Args, PJRT_Client_CreateUninitializedBuffer_Args>)
    return &args->buffer;
  else if constexpr (requires { args->dst_buffer; })
    return &args->dst_buffer;
  else if constexpr (requires { args->buffer_out; })
    return &args->buffer_out;
  else
    return nullptr;
}

// Fills the outputs with garbage, as a call that fails may leave them.
template <Form form, class Args>
void spoil_outputs(Args* args) {
  if constexpr (form == Form::kGetter) {
    constexpr std::size_t kFirst = offsetof(Args, extension_start) + 2 * sizeof(void*);
    std::memset(reinterpret_cast<char*>(args) + kFirst, kGarbage, sizeof(Args) - kFirst);
  } else if constexpr (std::is_same_v<Args, PJRT_Client_Create_Args>) {
    spoil(args->client);
  } else if constexpr (std::is_same_v<Args, PJRT_Client_Compile_Args> ||
                       std::is_same_v<Args, PJRT_Compile_Args>) {
    spoil(args->executable);
  } else if constexpr (std::is_same_v<Args, PJRT_Executable_DeserializeAndLoad_Args>) {
    spoil(args->loaded_executable);
  } else if constexpr (std::is_same_v<Args, PJRT_Plugin_Attributes_Args>) {
    spoil(args->attributes);
    spoil(args->num_attributes);
  } else if constexpr (std::is_same_v<Args, PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>) {
    spoil(args->transfer_manager);
  } else if constexpr (std::is_same_v<Args, PJRT_LoadedExecutable_Execute_Args>) {
    if (args->device_complete_events != nullptr)
      for (std::size_t d = 0; d < args->num_devices; ++d) spoil(args->device_complete_events[d]);
  } else {
    if (PJRT_Event** event = event_of(args)) spoil(*event);
    if (PJRT_Buffer** buffer = result_of(args)) spoil(*buffer);
  }
}

template <class Args>
std::vector<int> devices_of_call(Args* args) {
  if constexpr (std::is_same_v<Args, PJRT_LoadedExecutable_Execute_Args>)
    return devices_of(args);
  else if constexpr (std::is_same_v<Args, PJRT_Client_BufferFromHostBuffer_Args> ||
                     std::is_same_v<Args, PJRT_Client_CreateViewOfDeviceBuffer_Args> ||
                     std::is_same_v<Args, PJRT_Client_CreateUninitializedBuffer_Args>)
    return {id_of(args->device)};
  else if constexpr (std::is_same_v<Args, PJRT_Buffer_CopyToDevice_Args>)
    return {id_of(args->dst_device)};
  else if (PJRT_Buffer* source = source_of(args))
    return {device_of(source)};
  else
    return {};
}

bool asks_for_device() {
  std::lock_guard lock(state().mutex);
  return state().device >= 0;
}

Problem problem_of(const PJRT_Buffer* buffer) {
  std::lock_guard lock(state().mutex);
  auto found = state().bad_buffers.find(buffer);
  return found == state().bad_buffers.end() ? Problem{} : found->second;
}

void make_bad(const PJRT_Buffer* buffer, const Problem& problem) {
  std::lock_guard lock(state().mutex);
  state().bad_buffers[buffer] = problem;
}

// Waits without counting the call, which is our own.
void await_real(PJRT_Event* event) {
  PJRT_Event_Await_Args args{};
  args.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  args.event = event;
  free_real_error(real()->PJRT_Event_Await(&args));
}

void spoil_destination(PJRT_Buffer_ToHostBuffer_Args* args) {
  if (args->dst == nullptr) return;
  await_real(args->event);
  std::memset(args->dst, kGarbage, args->dst_size);
}
void spoil_destination(PJRT_Buffer_CopyRawToHost_Args* args) {
  await_real(args->event);
  std::memset(args->dst, kGarbage, static_cast<std::size_t>(args->transfer_size));
}

// Changes events and buffers of a call that the real plugin accepted, according to the fault.
template <class Args>
void change_results(Args* args, const Decision& decision) {
  Problem problem;
  if (decision.kind == kFaultErrorEvent) problem = decision.problem;
  if (decision.kind == kFaultStuckEvent) problem.stuck = true;
  if (PJRT_Buffer* source = source_of(args); source != nullptr && !problem.any())
    problem = problem_of(source);
  // Only an error in a buffer's own transfer makes it bad, not an error in a query of its
  // readiness.
  if (PJRT_Buffer** result = result_of(args))
    if (problem.code != 0) make_bad(*result, problem);
  PJRT_Event** event = event_of(args);
  if (event == nullptr || *event == nullptr || !problem.any()) return;
  if constexpr (requires { spoil_destination(args); })
    if (problem.code != 0) spoil_destination(args);
  *event = make_event(*event, problem, problem.stuck);
}

// The result of a launch on the d-th device.
Problem problem_on(std::size_t d, const Decision& decision, const std::vector<int>& devices) {
  bool named = decision.device < 0 || (d < devices.size() && devices[d] == decision.device);
  Problem stuck{0, "", true};
  switch (decision.kind) {
    case kFaultErrorEvent: return named ? decision.problem : Problem{};
    case kFaultStuckEvent: return named ? stuck : Problem{};
    case kFaultDeserted: return (decision.device < 0 ? d == 0 : named) ? decision.problem : stuck;
    default: return {};
  }
}

void change_results(PJRT_LoadedExecutable_Execute_Args* args, const Decision& decision,
                    const std::vector<int>& devices, const std::vector<Problem>& inputs,
                    std::size_t outputs) {
  for (std::size_t d = 0; d < args->num_devices; ++d) {
    Problem problem = problem_on(d, decision, devices);
    if (!problem.any()) problem = inputs[d];
    if (!problem.any()) continue;
    // An event that is merely held back does not affect the values.
    if (decision.kind != kFaultStuckEvent)
      for (std::size_t i = 0; i < outputs; ++i) make_bad(args->output_lists[d][i], problem);
    if (args->device_complete_events != nullptr)
      args->device_complete_events[d] =
          make_event(args->device_complete_events[d], problem, problem.stuck);
  }
}

std::size_t outputs_of(PJRT_LoadedExecutable* loaded) {
  PJRT_LoadedExecutable_GetExecutable_Args get{};
  get.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
  get.loaded_executable = loaded;
  if (PJRT_Error* error = real()->PJRT_LoadedExecutable_GetExecutable(&get))
    return free_real_error(error), 0;
  PJRT_Executable_NumOutputs_Args count{};
  count.struct_size = PJRT_Executable_NumOutputs_Args_STRUCT_SIZE;
  count.executable = get.executable;
  if (PJRT_Error* error = real()->PJRT_Executable_NumOutputs(&count))
    free_real_error(error), count.num_outputs = 0;
  PJRT_Executable_Destroy_Args destroy{};
  destroy.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
  destroy.executable = get.executable;
  free_real_error(real()->PJRT_Executable_Destroy(&destroy));
  return count.num_outputs;
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args, const Decision& decision,
                    const std::vector<int>& devices) {
  // On each device, a launch that reads a missing value also fails.
  std::vector<Problem> inputs(args->num_devices);
  bool bad = decision.kind >= kFaultErrorEvent;
  for (std::size_t d = 0; d < args->num_devices; ++d)
    for (std::size_t i = 0; i < args->num_args; ++i)
      if (!inputs[d].any()) inputs[d] = problem_of(args->argument_lists[d][i]);
  for (const Problem& problem : inputs) bad |= problem.any();
  PJRT_Error* error = real()->PJRT_LoadedExecutable_Execute(args);
  if (error != nullptr) return error;
  {
    std::lock_guard lock(state().mutex);
    ++state().launches;
  }
  if (bad) change_results(args, decision, devices, inputs, outputs_of(args->executable));
  return nullptr;
}

// Events may be ours; all other handles belong to the real plugin.
#define OURS(Name, function)                                                  \
  inline PJRT_Error* pass(PJRT_Error* (*)(Name##_Args*), Name##_Args* args) { \
    return function(args);                                                    \
  }
OURS(PJRT_Event_Destroy, event_destroy)
OURS(PJRT_Event_IsReady, event_is_ready)
OURS(PJRT_Event_Error, event_error)
OURS(PJRT_Event_Await, event_await)
OURS(PJRT_Event_OnReady, event_on_ready)
OURS(PJRT_Error_GetCode, error_get_code)
#undef OURS

// MESHARD_FAULTY_AS=PLATFORM,KIND: another platform and kind of device, as which a CPU plugin with
// one device appears.
struct Disguise {
  std::string platform, kind;
};
const Disguise& disguise() {
  static const Disguise made = [] {
    const char* text = std::getenv("MESHARD_FAULTY_AS");
    std::string all = text == nullptr ? "" : text;
    std::size_t comma = std::min(all.find(','), all.size());
    return Disguise{all.substr(0, comma), all.substr(std::min(comma + 1, all.size()))};
  }();
  return made;
}

template <class Args>
void put_on(Args* args) {
  if constexpr (std::is_same_v<Args, PJRT_Client_PlatformName_Args> ||
                std::is_same_v<Args, PJRT_TopologyDescription_PlatformName_Args>) {
    args->platform_name = disguise().platform.c_str();
    args->platform_name_size = disguise().platform.size();
  } else if constexpr (std::is_same_v<Args, PJRT_DeviceDescription_Kind_Args>) {
    args->device_kind = disguise().kind.c_str();
    args->device_kind_size = disguise().kind.size();
  }
}

// Other platforms are not asked for a number of virtual devices.
PJRT_Error* create_with_one_device(PJRT_Error* (*entry)(PJRT_Client_Create_Args*),
                                   PJRT_Client_Create_Args* args) {
  std::vector<PJRT_NamedValue> options(args->create_options,
                                       args->create_options + args->num_options);
  constexpr std::string_view kName = "cpu_device_count";
  PJRT_NamedValue one{};
  one.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  one.name = kName.data();
  one.name_size = kName.size();
  one.type = PJRT_NamedValue_kInt64;
  one.int64_value = 1;
  one.value_size = 1;
  options.push_back(one);
  PJRT_Client_Create_Args with_one = *args;
  with_one.create_options = options.data();
  with_one.num_options = options.size();
  PJRT_Error* error = entry(&with_one);
  args->client = with_one.client;
  return error;
}

template <class Args>
PJRT_Error* pass(PJRT_Error* (*entry)(Args*), Args* args) {
  if constexpr (std::is_same_v<Args, PJRT_Client_Create_Args>)
    if (!disguise().platform.empty()) return create_with_one_device(entry, args);
  if constexpr (std::is_same_v<Args, PJRT_Buffer_Destroy_Args>) {
    std::lock_guard lock(state().mutex);
    state().bad_buffers.erase(args->buffer);
  }
  return entry(args);
}

template <Form form, class Args>
PJRT_Error* call(const char* name, PJRT_Error* (*entry)(Args*), Args* args) {
  constexpr bool kLaunch = std::is_same_v<Args, PJRT_LoadedExecutable_Execute_Args>;
  bool gives_event = event_of(args) != nullptr;
  std::size_t rows = 0;
  if constexpr (kLaunch) {
    gives_event = args->device_complete_events != nullptr;
    rows = args->num_devices;
  }
  std::vector<int> devices;
  if constexpr (form != Form::kExempt)
    if (asks_for_device()) devices = devices_of_call(args);
  Decision decision = enter(name, form != Form::kExempt, gives_event, rows, devices);
  if (decision.kind == kFaultError) {
    // A failed wait reports the error of the event, so the event must have fired.
    if constexpr (std::is_same_v<Args, PJRT_Event_Await_Args>) free_real_error(event_await(args));
    spoil_outputs<form>(args);
    return make_error(decision.problem);
  }
  if (decision.kind == kFaultLate)
    std::this_thread::sleep_for(std::chrono::milliseconds(decision.milliseconds));
  if constexpr (kLaunch) {
    return execute(args, decision, devices);
  } else {
    PJRT_Error* error = pass(entry, args);
    if constexpr (form != Form::kExempt)
      if (error == nullptr) change_results(args, decision);
    if (error == nullptr && !disguise().platform.empty()) put_on(args);
    return error;
  }
}

// Wraps an entry. The real plugin frees only its own errors.
#define FAULTY(Name, form) \
  PJRT_Error* Name(Name##_Args* args) { return call<form>(#Name, real()->Name, args); }
#define FAULTY_EXEMPT(Name) FAULTY(Name, Form::kExempt)
#define FAULTY_GETTER(Name) FAULTY(Name, Form::kGetter)
#define FAULTY_CALL(Name) FAULTY(Name, Form::kCall)
#include "tests/faulty_plugin/entries.inc"
#undef FAULTY_EXEMPT
#undef FAULTY_GETTER
#undef FAULTY_CALL

void destroy_counted(PJRT_Error_Destroy_Args* args) {
  enter("PJRT_Error_Destroy", false, false, 0, {});
  error_destroy(args);
}
void message_counted(PJRT_Error_Message_Args* args) {
  enter("PJRT_Error_Message", false, false, 0, {});
  error_message(args);
}

#define FAULTY_EXEMPT(Name) +1
#define FAULTY_GETTER(Name) +1
#define FAULTY_CALL(Name) +1
constexpr std::size_t kEntries = 2
#include "tests/faulty_plugin/entries.inc"
    ;
#undef FAULTY_EXEMPT
#undef FAULTY_GETTER
#undef FAULTY_CALL
static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) + kEntries * sizeof(void*) == sizeof(PJRT_Api),
              "entries.inc lacks an entry of the header's table");

PJRT_Api make_table(const PJRT_Api* from) {
  PJRT_Api api{};
  // Entries that the real plugin or our header lacks are missing.
  std::size_t size = std::min(from->struct_size, sizeof(PJRT_Api));
  std::memcpy(static_cast<void*>(&api), from, size);
  api.struct_size = size;
  auto wrap = [&](std::size_t offset, auto& slot, auto* ours) {
    if (offset + sizeof(void*) <= size && slot != nullptr) slot = ours;
  };
#define FAULTY_WRAP(Name) wrap(offsetof(PJRT_Api, Name), api.Name, &Name);
#define FAULTY_EXEMPT FAULTY_WRAP
#define FAULTY_GETTER FAULTY_WRAP
#define FAULTY_CALL FAULTY_WRAP
#include "tests/faulty_plugin/entries.inc"
  api.PJRT_Error_Destroy = destroy_counted;
  api.PJRT_Error_Message = message_counted;
  return api;
}

}  // namespace
}  // namespace faulty

extern "C" {

EXPORT const PJRT_Api* GetPjrtApi() {
  if (faulty::real() == nullptr) return nullptr;
  static const PJRT_Api api = faulty::make_table(faulty::real());
  return &api;
}

EXPORT void faulty_set(const Fault* fault) {
  faulty::State& all = faulty::state();
  std::lock_guard lock(all.mutex);
  all.kind = fault == nullptr ? kFaultNone : fault->kind;
  all.matched = all.hits = 0;
  all.hit_entry = "";
  if (fault == nullptr) return;
  all.call = fault->call;
  all.entry = fault->entry == nullptr ? "" : fault->entry;
  all.device = fault->device;
  all.problem = {fault->code, fault->message == nullptr ? "injected fault" : fault->message, false};
  all.milliseconds = fault->milliseconds;
}
EXPORT int faulty_hits() {
  std::lock_guard lock(faulty::state().mutex);
  return faulty::state().hits;
}
EXPORT int faulty_matches() {
  std::lock_guard lock(faulty::state().mutex);
  return faulty::state().matched;
}
EXPORT const char* faulty_hit_entry() {
  std::lock_guard lock(faulty::state().mutex);
  return faulty::state().hit_entry;
}
EXPORT int faulty_calls() {
  std::lock_guard lock(faulty::state().mutex);
  return static_cast<int>(faulty::state().calls.size());
}
EXPORT const char* faulty_call_name(int k) {
  std::lock_guard lock(faulty::state().mutex);
  const auto& calls = faulty::state().calls;
  return k < 1 || k > static_cast<int>(calls.size()) ? ""
                                                     : calls[static_cast<std::size_t>(k - 1)].entry;
}
EXPORT int faulty_call_gives_event(int k) {
  std::lock_guard lock(faulty::state().mutex);
  const auto& calls = faulty::state().calls;
  return k >= 1 && k <= static_cast<int>(calls.size()) &&
         calls[static_cast<std::size_t>(k - 1)].gives_event;
}
EXPORT void faulty_forget_calls() {
  std::lock_guard lock(faulty::state().mutex);
  faulty::state().calls.clear();
}
EXPORT int faulty_call_count(const char* entry) {
  std::lock_guard lock(faulty::state().mutex);
  auto found = faulty::state().counts.find(entry);
  return found == faulty::state().counts.end() ? 0 : found->second;
}
EXPORT int faulty_launches() {
  std::lock_guard lock(faulty::state().mutex);
  return faulty::state().launches;
}
EXPORT int faulty_live_objects() {
  std::lock_guard lock(faulty::state().mutex);
  return static_cast<int>(faulty::state().errors.size() + faulty::state().events.size());
}
}
