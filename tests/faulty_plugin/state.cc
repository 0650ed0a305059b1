#include "tests/faulty_plugin/state.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace faulty {
namespace {

// Reads MESHARD_FAULT, as control.h describes it.
void read_environment(State& to) {
  const char* text = std::getenv("MESHARD_FAULT");
  if (text == nullptr) return;
  std::string rest = text;
  while (!rest.empty()) {
    std::size_t equal = rest.find('=');
    std::string key = rest.substr(0, equal);
    rest = equal == rest.npos ? "" : rest.substr(equal + 1);
    std::size_t comma = key == "message" ? rest.npos : rest.find(',');
    std::string value = rest.substr(0, comma);
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
    if (key == "kind")
      to.kind = value == "error"         ? kFaultError
                : value == "late"        ? kFaultLate
                : value == "error_event" ? kFaultErrorEvent
                : value == "stuck_event" ? kFaultStuckEvent
                : value == "deserted"    ? kFaultDeserted
                                         : kFaultNone;
    if (key == "entry") to.entry = value;
    if (key == "message") to.problem.message = value;
    if (key == "call") to.call = std::atoi(value.c_str());
    if (key == "device") to.device = std::atoi(value.c_str());
    if (key == "code") to.problem.code = std::atoi(value.c_str());
    if (key == "ms") to.milliseconds = std::atoi(value.c_str());
  }
}

}  // namespace

State& state() {
  // Never destroyed: the real plugin's threads may still call after static objects are destroyed.
  static State* instance = [] {
    auto* made = new State;
    made->problem = {13, "injected fault", false};
    read_environment(*made);
    return made;
  }();
  return *instance;
}

const PJRT_Api* real() {
  static const PJRT_Api* api = []() -> const PJRT_Api* {
    const char* path = std::getenv("MESHARD_FAULTY_PLUGIN");
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "faulty plugin: MESHARD_FAULTY_PLUGIN: %s\n",
                   path == nullptr ? "not set" : dlerror());
      return nullptr;
    }
    auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
    return get == nullptr ? nullptr : get();
  }();
  return api;
}

PJRT_Error* make_error(const Problem& problem) {
  auto* error = new OwnError{problem};
  std::lock_guard lock(state().mutex);
  state().errors.insert(error);
  return reinterpret_cast<PJRT_Error*>(error);
}

PJRT_Event* make_event(PJRT_Event* real, const Problem& problem, bool stuck) {
  auto* event = new OwnEvent{real, problem, stuck};
  std::lock_guard lock(state().mutex);
  state().events.insert(event);
  return reinterpret_cast<PJRT_Event*>(event);
}

bool is_own(const PJRT_Error* error) {
  std::lock_guard lock(state().mutex);
  return state().errors.contains(error);
}
bool is_own(const PJRT_Event* event) {
  std::lock_guard lock(state().mutex);
  return state().events.contains(event);
}

Decision enter(const char* entry, bool can_fail, bool gives_event, std::size_t rows,
               const std::vector<int>& devices) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  ++all.counts[entry];
  if (!can_fail) return {};
  all.calls.push_back({entry, gives_event});
  if (all.kind == kFaultNone || (!all.entry.empty() && all.entry != entry)) return {};
  bool here = all.device < 0;
  for (int device : devices) here |= device == all.device;
  if (all.kind == kFaultDeserted && rows < 2) return {};
  bool of_events = all.kind == kFaultErrorEvent || all.kind == kFaultStuckEvent;
  if (!here || (of_events && !gives_event) || ++all.matched != all.call) return {};
  ++all.hits;
  all.hit_entry = entry;
  return {all.kind, all.problem, all.device, all.milliseconds};
}

void free_real_error(PJRT_Error* error) {
  if (error == nullptr) return;
  PJRT_Error_Destroy_Args args{};
  args.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE;
  args.error = error;
  real()->PJRT_Error_Destroy(&args);
}

// These call the real plugin directly: they are not calls of the program under test.
int id_of(PJRT_Device* device) {
  if (device == nullptr) return -1;
  PJRT_Device_GetDescription_Args description{};
  description.struct_size = PJRT_Device_GetDescription_Args_STRUCT_SIZE;
  description.device = device;
  if (PJRT_Error* error = real()->PJRT_Device_GetDescription(&description))
    return free_real_error(error), -1;
  PJRT_DeviceDescription_Id_Args id{};
  id.struct_size = PJRT_DeviceDescription_Id_Args_STRUCT_SIZE;
  id.device_description = description.device_description;
  if (PJRT_Error* error = real()->PJRT_DeviceDescription_Id(&id)) return free_real_error(error), -1;
  return id.id;
}

std::vector<int> devices_of(PJRT_LoadedExecutable_Execute_Args* args) {
  if (args->execute_device != nullptr) return {id_of(args->execute_device)};
  PJRT_LoadedExecutable_AddressableDevices_Args list{};
  list.struct_size = PJRT_LoadedExecutable_AddressableDevices_Args_STRUCT_SIZE;
  list.executable = args->executable;
  if (PJRT_Error* error = real()->PJRT_LoadedExecutable_AddressableDevices(&list))
    return free_real_error(error), std::vector<int>{};
  std::vector<int> ids;
  for (std::size_t i = 0; i < list.num_addressable_devices; ++i)
    ids.push_back(id_of(list.addressable_devices[i]));
  return ids;
}

int device_of(PJRT_Buffer* buffer) {
  PJRT_Buffer_Device_Args args{};
  args.struct_size = PJRT_Buffer_Device_Args_STRUCT_SIZE;
  args.buffer = buffer;
  if (real()->PJRT_Buffer_Device == nullptr) return -1;
  if (PJRT_Error* error = real()->PJRT_Buffer_Device(&args)) return free_real_error(error), -1;
  return id_of(args.device);
}

}  // namespace faulty
