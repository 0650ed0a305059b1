// A PJRT plugin in process memory for tests: any number of devices, no compiler. See control.h.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/fake_plugin/clock.h"
#include "tests/fake_plugin/control.h"
#include "tests/fake_plugin/state.h"

#define EXPORT __attribute__((visibility("default")))

namespace fake {
namespace {

PJRT_Error* error_of(const MomentPtr& moment) {
  std::lock_guard lock(moment->mutex);
  return moment->code == 0 ? nullptr : fail(moment->code, moment->message);
}

// ---- errors, plugin, events --------------------------------------------------------------------

void error_destroy(PJRT_Error_Destroy_Args* args) { delete args->error; }
void error_message(PJRT_Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}
ENTRY(PJRT_Error_GetCode) {
  args->code = static_cast<PJRT_Error_Code>(args->error->code);
  return nullptr;
}
ENTRY(PJRT_Plugin_Initialize) {
  (void)args;
  ENTER(PJRT_Plugin_Initialize);
  return nullptr;
}
ENTRY(PJRT_Plugin_Attributes) {
  ENTER(PJRT_Plugin_Attributes);
  static const int64_t newest[] = {1, 13, 3};
  static const int64_t oldest[] = {0, 9, 0};
  static PJRT_NamedValue values[2];
  const char* names[] = {"stablehlo_current_version", "stablehlo_minimum_version"};
  for (int i = 0; i < 2; ++i) {
    values[i] = {};
    values[i].struct_size = PJRT_NamedValue_STRUCT_SIZE;
    values[i].name = names[i];
    values[i].name_size = strlen(names[i]);
    values[i].type = PJRT_NamedValue_kInt64List;
    values[i].int64_array_value = i == 0 ? newest : oldest;
    values[i].value_size = 3;
  }
  args->attributes = values;
  args->num_attributes = 2;
  return nullptr;
}
ENTRY(PJRT_Event_Destroy) {
  delete args->event;
  return nullptr;
}
ENTRY(PJRT_Event_IsReady) {
  ENTER(PJRT_Event_IsReady);
  std::lock_guard lock(args->event->moment->mutex);
  args->is_ready = args->event->moment->done && simulated_clock().is_past(*args->event->moment);
  return nullptr;
}
ENTRY(PJRT_Event_Await) {
  ENTER(PJRT_Event_Await);
  args->event->moment->wait();
  return error_of(args->event->moment);
}
ENTRY(PJRT_Event_OnReady) {
  ENTER(PJRT_Event_OnReady);
  MomentPtr moment = args->event->moment;
  auto call = [moment = moment.get(), callback = args->callback, user = args->user_arg] {
    callback(moment->code == 0 ? nullptr : fail(moment->code, moment->message), user);
  };
  {
    std::lock_guard lock(moment->mutex);
    if (!moment->done) {
      moment->callbacks.push_back(call);
      return nullptr;
    }
  }
  simulated_clock().wait_for(*moment);
  call();
  return nullptr;
}

// ---- client and devices ------------------------------------------------------------------------

// How many processes and devices there are: as the options say, else as the control functions do.
PJRT_Error* find_processes(const PJRT_Client_Create_Args& args, PJRT_Client& client,
                           std::vector<int>& counts) {
  int64_t count = 4, node = 0, nodes = 1;
  if (const char* devices = getenv("MESHARD_FAKE_DEVICES")) count = atoi(devices);
  for (size_t i = 0; i < args.num_options; ++i) {
    const PJRT_NamedValue& option = args.create_options[i];
    std::string_view name(option.name, option.name_size);
    int64_t* value = name == "cpu_device_count" ? &count
                     : name == "node_id"        ? &node
                     : name == "num_nodes"      ? &nodes
                                                : nullptr;
    if (value == nullptr) continue;
    if (option.type != PJRT_NamedValue_kInt64) return invalid("an option is not an int64");
    *value = option.int64_value;
  }
  const char* platform = getenv("MESHARD_FAKE_PLATFORM");
  int processes = 1;
  {
    std::lock_guard lock(control().mutex);
    client.platform = platform ? platform : control().platform;
    client.process = control().process;
    processes = control().processes;
  }
  if (nodes > 1) {
    client.process = static_cast<int>(node);
    client.exchange = std::make_unique<Exchange>(args, static_cast<int>(node),
                                                 static_cast<int>(nodes), client.platform);
    return client.exchange->topology(static_cast<int>(count), counts);
  }
  counts.resize(static_cast<size_t>(processes));
  for (int64_t i = 0; i < count; ++i) ++counts[static_cast<size_t>(i * processes / count)];
  return nullptr;
}

// Ids count up, process by process.
void add_devices(PJRT_Client& client, const std::vector<int>& counts) {
  std::lock_guard lock(control().mutex);
  int id = 0;
  for (size_t process = 0; process < counts.size(); ++process)
    for (int i = 0; i < counts[process]; ++i, ++id) {
      auto device = std::make_unique<PJRT_Device>();
      device->description.id = id;
      device->description.text = "FakeDevice(id=" + std::to_string(id) + ")";
      if (control().grid) place_on_grid(device->description, *control().grid);
      device->description.process = static_cast<int>(process);
      device->addressable = device->description.process == client.process;
      device->memory.id = id;
      device->memory.kind = "device";
      device->memory.device = device.get();
      client.devices.push_back(device.get());
      client.owned.push_back(std::move(device));
    }
  if (control().reverse_devices) std::reverse(client.devices.begin(), client.devices.end());
  std::copy_if(client.devices.begin(), client.devices.end(), std::back_inserter(client.addressable),
               [](const PJRT_Device* device) { return device->addressable; });
}

ENTRY(PJRT_Client_Create) {
  ENTER(PJRT_Client_Create);
  // For tests that start a program and cannot call the control functions.
  if (const char* fate = getenv("MESHARD_FAKE_ON_CREATE")) {
    fprintf(stderr, "fake plugin: %s\n", fate);
    if (std::string_view(fate) == "abort") abort();
    if (std::string_view(fate) == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    char* words = nullptr;
    long code = strtol(fate, &words, 10);
    if (code > 0) return fail(static_cast<int>(code), words + 1);
  }
  std::unique_ptr<PJRT_Client> client = std::make_unique<PJRT_Client>();
  std::vector<int> counts;  // of the devices of each process
  if (PJRT_Error* error = find_processes(*args, *client, counts)) return error;
  add_devices(*client, counts);
  args->client = client.release();
  return nullptr;
}
ENTRY(PJRT_Client_Destroy) {
  for (std::thread& thread : args->client->threads) thread.join();
  delete args->client;
  return nullptr;
}
ENTRY(PJRT_Client_PlatformName) {
  ENTER(PJRT_Client_PlatformName);
  args->platform_name = args->client->platform.data();
  args->platform_name_size = args->client->platform.size();
  return nullptr;
}
ENTRY(PJRT_Client_PlatformVersion) {
  ENTER(PJRT_Client_PlatformVersion);
  args->platform_version = "fake 1";
  args->platform_version_size = 6;
  return nullptr;
}
ENTRY(PJRT_Client_ProcessIndex) {
  ENTER(PJRT_Client_ProcessIndex);
  args->process_index = args->client->process;
  return nullptr;
}
ENTRY(PJRT_Client_Devices) {
  ENTER(PJRT_Client_Devices);
  args->devices = args->client->devices.data();
  args->num_devices = args->client->devices.size();
  return nullptr;
}
ENTRY(PJRT_Client_AddressableDevices) {
  ENTER(PJRT_Client_AddressableDevices);
  args->addressable_devices = args->client->addressable.data();
  args->num_addressable_devices = args->client->addressable.size();
  return nullptr;
}
ENTRY(PJRT_DeviceDescription_Id) {
  ENTER(PJRT_DeviceDescription_Id);
  args->id = args->device_description->id;
  return nullptr;
}
ENTRY(PJRT_DeviceDescription_ProcessIndex) {
  ENTER(PJRT_DeviceDescription_ProcessIndex);
  args->process_index = args->device_description->process;
  return nullptr;
}
ENTRY(PJRT_DeviceDescription_Attributes) {
  ENTER(PJRT_DeviceDescription_Attributes);
  args->attributes = args->device_description->attributes.data();
  args->num_attributes = args->device_description->attributes.size();
  return nullptr;
}
ENTRY(PJRT_DeviceDescription_Kind) {
  ENTER(PJRT_DeviceDescription_Kind);
  args->device_kind = args->device_description->kind.data();
  args->device_kind_size = args->device_description->kind.size();
  return nullptr;
}
ENTRY(PJRT_DeviceDescription_ToString) {
  ENTER(PJRT_DeviceDescription_ToString);
  args->to_string = args->device_description->text.data();
  args->to_string_size = args->device_description->text.size();
  return nullptr;
}
ENTRY(PJRT_Device_GetDescription) {
  ENTER(PJRT_Device_GetDescription);
  args->device_description = &args->device->description;
  return nullptr;
}
ENTRY(PJRT_Device_IsAddressable) {
  ENTER(PJRT_Device_IsAddressable);
  args->is_addressable = args->device->addressable;
  return nullptr;
}
ENTRY(PJRT_Device_LocalHardwareId) {
  ENTER(PJRT_Device_LocalHardwareId);
  args->local_hardware_id = args->device->description.id;
  return nullptr;
}
ENTRY(PJRT_Device_MemoryStats) {
  ENTER(PJRT_Device_MemoryStats);
  args->bytes_in_use = args->device->bytes_in_use;
  args->peak_bytes_in_use = args->device->peak_bytes;
  args->peak_bytes_in_use_is_set = true;
  args->bytes_limit_is_set = args->largest_free_block_bytes_is_set = false;
  return nullptr;
}
ENTRY(PJRT_Device_AddressableMemories) {
  ENTER(PJRT_Device_AddressableMemories);
  args->memories = args->device->memories;
  args->num_memories = 1;
  return nullptr;
}
ENTRY(PJRT_Device_DefaultMemory) {
  ENTER(PJRT_Device_DefaultMemory);
  args->memory = &args->device->memory;
  return nullptr;
}
ENTRY(PJRT_Memory_Id) {
  ENTER(PJRT_Memory_Id);
  args->id = args->memory->id;
  return nullptr;
}
ENTRY(PJRT_Memory_Kind) {
  ENTER(PJRT_Memory_Kind);
  args->kind = args->memory->kind.data();
  args->kind_size = args->memory->kind.size();
  return nullptr;
}
ENTRY(PJRT_Memory_AddressableByDevices) {
  ENTER(PJRT_Memory_AddressableByDevices);
  args->devices = &args->memory->device;
  args->num_devices = 1;
  return nullptr;
}

// ---- programs ----------------------------------------------------------------------------------

PJRT_Error* load(PJRT_Client* client, std::string_view module, std::string_view options,
                 PJRT_LoadedExecutable** out) {
  auto program = std::make_shared<Program>();
  std::string error;
  if (!parse_program(module, options, *program, error)) return fail(3, error);
  auto* loaded = new PJRT_LoadedExecutable;
  loaded->client = client;
  loaded->program = program;
  for (int64_t id : program->device_ids) loaded->all_devices.push_back(client->find(id));
  auto seen = loaded->all_devices;
  std::sort(seen.begin(), seen.end());
  bool unique = std::adjacent_find(seen.begin(), seen.end()) == seen.end();
  if (!unique || loaded->all_devices.size() != static_cast<size_t>(program->devices()) ||
      std::count(seen.begin(), seen.end(), nullptr) != 0) {
    delete loaded;
    return invalid("the device assignment is unsound");
  }
  std::copy_if(loaded->all_devices.begin(), loaded->all_devices.end(),
               std::back_inserter(loaded->devices),
               [](const PJRT_Device* device) { return device->addressable; });
  if (loaded->devices.empty()) {
    delete loaded;
    return fail(3, "the device assignment does not have any local devices");
  }
  *out = loaded;
  return nullptr;
}

ENTRY(PJRT_Client_Compile) {
  ENTER(PJRT_Client_Compile);
  if (PJRT_Error* error = fate_of_compile()) return error;
  return load(args->client, {args->program->code, args->program->code_size},
              {args->compile_options, args->compile_options_size}, &args->executable);
}
ENTRY(PJRT_LoadedExecutable_Destroy) {
  delete args->executable;
  return nullptr;
}
ENTRY(PJRT_LoadedExecutable_GetExecutable) {
  ENTER(PJRT_LoadedExecutable_GetExecutable);
  auto* executable = new PJRT_Executable;
  executable->program = args->loaded_executable->program;
  for (const Type& type : executable->program->results) {
    executable->output_types.push_back(static_cast<PJRT_Buffer_Type>(type.element));
    executable->output_ranks.push_back(type.dims.size());
    executable->output_dims.insert(executable->output_dims.end(), type.dims.begin(),
                                   type.dims.end());
  }
  args->executable = executable;
  return nullptr;
}
ENTRY(PJRT_LoadedExecutable_AddressableDevices) {
  ENTER(PJRT_LoadedExecutable_AddressableDevices);
  args->addressable_devices = args->executable->devices.data();
  args->num_addressable_devices = args->executable->devices.size();
  return nullptr;
}
ENTRY(PJRT_Executable_Destroy) {
  delete args->executable;
  return nullptr;
}
ENTRY(PJRT_Executable_Name) {
  ENTER(PJRT_Executable_Name);
  const std::string& name = args->executable->program->name;
  args->executable_name = name.data();
  args->executable_name_size = name.size();
  return nullptr;
}
ENTRY(PJRT_Executable_NumReplicas) {
  ENTER(PJRT_Executable_NumReplicas);
  args->num_replicas = static_cast<size_t>(args->executable->program->replicas);
  return nullptr;
}
ENTRY(PJRT_Executable_NumPartitions) {
  ENTER(PJRT_Executable_NumPartitions);
  args->num_partitions = static_cast<size_t>(args->executable->program->partitions);
  return nullptr;
}
ENTRY(PJRT_Executable_NumOutputs) {
  ENTER(PJRT_Executable_NumOutputs);
  args->num_outputs = args->executable->program->results.size();
  return nullptr;
}
ENTRY(PJRT_Executable_OutputElementTypes) {
  ENTER(PJRT_Executable_OutputElementTypes);
  args->output_types = args->executable->output_types.data();
  args->num_output_types = args->executable->output_types.size();
  return nullptr;
}
ENTRY(PJRT_Executable_OutputDimensions) {
  ENTER(PJRT_Executable_OutputDimensions);
  args->num_outputs = args->executable->output_ranks.size();
  args->dims = args->executable->output_dims.data();
  args->dim_sizes = args->executable->output_ranks.data();
  return nullptr;
}
ENTRY(PJRT_Executable_OptimizedProgram) {
  ENTER(PJRT_Executable_OptimizedProgram);
  std::string& bytes = args->executable->optimized;
  if (bytes.empty()) bytes = args->executable->program->optimized();
  if (args->program->code != nullptr)
    memcpy(args->program->code, bytes.data(), std::min(bytes.size(), args->program->code_size));
  args->program->code_size = bytes.size();
  args->program->format = "hlo_with_config";
  args->program->format_size = 15;
  return nullptr;
}
ENTRY(PJRT_Executable_Fingerprint) {
  ENTER(PJRT_Executable_Fingerprint);
  args->executable_fingerprint = args->executable->program->module.data();
  args->executable_fingerprint_size = args->executable->program->module.size();
  return nullptr;
}
// The module and the options, each preceded by its length.
ENTRY(PJRT_Executable_Serialize) {
  ENTER(PJRT_Executable_Serialize);
  const Program& program = *args->executable->program;
  auto* bytes = new std::string("fake" + std::to_string(program.module.size()) + "\n" +
                                program.module + program.options);
  args->serialized_bytes = bytes->data();
  args->serialized_bytes_size = bytes->size();
  args->serialized_executable = reinterpret_cast<PJRT_SerializedExecutable*>(bytes);
  args->serialized_executable_deleter = [](PJRT_SerializedExecutable* text) {
    delete reinterpret_cast<std::string*>(text);
  };
  return nullptr;
}
ENTRY(PJRT_Executable_DeserializeAndLoad) {
  ENTER(PJRT_Executable_DeserializeAndLoad);
  std::string_view all(args->serialized_executable, args->serialized_executable_size);
  size_t line = all.find('\n');
  if (!all.starts_with("fake") || line == all.npos) return fail(13, "no serialized executable");
  size_t size = std::stoul(std::string(all.substr(4, line - 4)));
  if (size > all.size() - line - 1) return fail(13, "the serialized executable is cut off");
  std::string_view options = all.substr(line + 1 + size);
  if (args->overridden_serialized_compile_options != nullptr)
    options = {args->overridden_serialized_compile_options,
               args->overridden_serialized_compile_options_size};
  return load(args->client, all.substr(line + 1, size), options, &args->loaded_executable);
}

#define SET(Name) api.Name = Name
// An extension whose number the header does not know, as newer plugins have them.
PJRT_Extension_Base extension_of_a_newer_api() {
  PJRT_Extension_Base extension{};
  extension.struct_size = sizeof extension;
  constexpr int kNumber = 1000;
  std::memcpy(&extension.type, &kNumber, sizeof kNumber);
  return extension;
}

void set_program_entries(PJRT_Api& api) {
  SET(PJRT_Client_Compile);
  SET(PJRT_LoadedExecutable_Destroy);
  SET(PJRT_LoadedExecutable_GetExecutable);
  SET(PJRT_LoadedExecutable_AddressableDevices);
  SET(PJRT_Executable_Destroy);
  SET(PJRT_Executable_Name);
  SET(PJRT_Executable_NumReplicas);
  SET(PJRT_Executable_NumPartitions);
  SET(PJRT_Executable_NumOutputs);
  SET(PJRT_Executable_OutputElementTypes);
  SET(PJRT_Executable_OutputDimensions);
  SET(PJRT_Executable_OptimizedProgram);
  SET(PJRT_Executable_Fingerprint);
  SET(PJRT_Executable_Serialize);
  SET(PJRT_Executable_DeserializeAndLoad);
}

PJRT_Api make_table() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_LoadedExecutable_Execute = execute;
  api.PJRT_Client_TopologyDescription = topology_of_client;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = topology_devices;
  api.PJRT_TopologyDescription_Attributes = topology_attributes;
  SET(PJRT_Error_GetCode);
  SET(PJRT_Plugin_Initialize);
  SET(PJRT_Plugin_Attributes);
  SET(PJRT_Event_Destroy);
  SET(PJRT_Event_IsReady);
  SET(PJRT_Event_Await);
  SET(PJRT_Event_OnReady);
  SET(PJRT_Client_Create);
  SET(PJRT_Client_Destroy);
  SET(PJRT_Client_PlatformName);
  SET(PJRT_Client_PlatformVersion);
  SET(PJRT_Client_ProcessIndex);
  SET(PJRT_Client_Devices);
  SET(PJRT_Client_AddressableDevices);
  SET(PJRT_DeviceDescription_Id);
  SET(PJRT_DeviceDescription_ProcessIndex);
  SET(PJRT_DeviceDescription_Attributes);
  SET(PJRT_DeviceDescription_Kind);
  SET(PJRT_DeviceDescription_ToString);
  SET(PJRT_Device_GetDescription);
  SET(PJRT_Device_IsAddressable);
  SET(PJRT_Device_LocalHardwareId);
  SET(PJRT_Device_MemoryStats);
  SET(PJRT_Device_AddressableMemories);
  SET(PJRT_Device_DefaultMemory);
  SET(PJRT_Memory_Id);
  SET(PJRT_Memory_Kind);
  SET(PJRT_Memory_AddressableByDevices);
  set_program_entries(api);
  set_buffer_entries(api);
  set_transfer_entries(api);
#undef SET
  static PJRT_Extension_Base newer = extension_of_a_newer_api();
  api.extension_start = &newer;
  return api;
}

}  // namespace

void reset_table() { table() = make_table(); }

PJRT_Api& table() {
  static PJRT_Api api = make_table();
  return api;
}

}  // namespace fake

extern "C" {

EXPORT const PJRT_Api* GetPjrtApi() { return &fake::table(); }
}
