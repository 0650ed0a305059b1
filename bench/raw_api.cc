#include "bench/raw_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "meshard/pjrt/client.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/launch_rules.h"
#include "meshard/runtime/runtime.h"

namespace meshard::bench {
namespace {

// The arguments of one entry of the table, with the struct size set.
template <class Arguments>
Arguments make(std::size_t size) {
  Arguments arguments{};
  arguments.struct_size = size;
  return arguments;
}
#define MESHARD_RAW_ARGUMENTS(name) make<name##_Args>(name##_Args_STRUCT_SIZE)

std::size_t num_outputs(const PJRT_Api* api, PJRT_LoadedExecutable* loaded) {
  auto get = MESHARD_RAW_ARGUMENTS(PJRT_LoadedExecutable_GetExecutable);
  get.loaded_executable = loaded;
  check(api, api->PJRT_LoadedExecutable_GetExecutable(&get), "get executable");
  auto count = MESHARD_RAW_ARGUMENTS(PJRT_Executable_NumOutputs);
  count.executable = get.executable;
  check(api, api->PJRT_Executable_NumOutputs(&count), "number of outputs");
  auto destroy = MESHARD_RAW_ARGUMENTS(PJRT_Executable_Destroy);
  destroy.executable = get.executable;
  check(api, api->PJRT_Executable_Destroy(&destroy), "destroy executable");
  return count.num_outputs;
}

}  // namespace

void check(const PJRT_Api* api, PJRT_Error* error, const char* call) {
  if (error == nullptr) return;
  auto message = MESHARD_RAW_ARGUMENTS(PJRT_Error_Message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::fprintf(stderr, "meshard-bench: raw %s: %.*s\n", call,
               static_cast<int>(message.message_size), message.message);
  std::exit(1);
}

void await_event(const PJRT_Api* api, PJRT_Event* event) {
  auto await = MESHARD_RAW_ARGUMENTS(PJRT_Event_Await);
  await.event = event;
  check(api, api->PJRT_Event_Await(&await), "await");
  auto destroy = MESHARD_RAW_ARGUMENTS(PJRT_Event_Destroy);
  destroy.event = event;
  api->PJRT_Event_Destroy(&destroy);
}

void destroy_buffer(const PJRT_Api* api, PJRT_Buffer* buffer) {
  auto destroy = MESHARD_RAW_ARGUMENTS(PJRT_Buffer_Destroy);
  destroy.buffer = buffer;
  api->PJRT_Buffer_Destroy(&destroy);
}

void await_buffer(const PJRT_Api* api, PJRT_Buffer* buffer) {
  auto ready = MESHARD_RAW_ARGUMENTS(PJRT_Buffer_ReadyEvent);
  ready.buffer = buffer;
  check(api, api->PJRT_Buffer_ReadyEvent(&ready), "ready event");
  await_event(api, ready.event);
}

RawClient raw_runtime_client() {
  const pjrt::Client& client = runtime_client();
  RawClient raw{client.plugin().api(), client.raw(), {}};
  auto devices = MESHARD_RAW_ARGUMENTS(PJRT_Client_AddressableDevices);
  devices.client = raw.client;
  check(raw.api, raw.api->PJRT_Client_AddressableDevices(&devices), "devices");
  raw.devices.assign(devices.addressable_devices,
                     devices.addressable_devices + devices.num_addressable_devices);
  return raw;
}

RawClient make_raw_client(const std::string& path, int num_devices) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "meshard-bench: %s\n", dlerror());
    std::exit(1);
  }
  RawClient raw;
  raw.api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  PJRT_NamedValue option{};
  option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  option.name = "cpu_device_count";
  option.name_size = std::strlen(option.name);
  option.type = PJRT_NamedValue_kInt64;
  option.int64_value = num_devices;
  option.value_size = 1;
  auto create = MESHARD_RAW_ARGUMENTS(PJRT_Client_Create);
  create.create_options = &option;
  create.num_options = 1;
  check(raw.api, raw.api->PJRT_Client_Create(&create), "create client");
  raw.client = create.client;
  auto devices = MESHARD_RAW_ARGUMENTS(PJRT_Client_AddressableDevices);
  devices.client = raw.client;
  check(raw.api, raw.api->PJRT_Client_AddressableDevices(&devices), "devices");
  raw.devices.assign(devices.addressable_devices,
                     devices.addressable_devices + devices.num_addressable_devices);
  return raw;
}

PJRT_Buffer* send(const RawClient& client, const float* data, const std::vector<std::int64_t>& dims,
                  int device, PJRT_HostBufferSemantics semantics) {
  auto from = MESHARD_RAW_ARGUMENTS(PJRT_Client_BufferFromHostBuffer);
  from.client = client.client;
  from.data = data;
  from.type = PJRT_Buffer_Type_F32;
  from.dims = dims.data();
  from.num_dims = dims.size();
  from.host_buffer_semantics = semantics;
  from.device = client.devices[static_cast<std::size_t>(device)];
  check(client.api, client.api->PJRT_Client_BufferFromHostBuffer(&from), "send");
  if (semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy) {
    auto destroy = MESHARD_RAW_ARGUMENTS(PJRT_Event_Destroy);
    destroy.event = from.done_with_host_buffer;
    client.api->PJRT_Event_Destroy(&destroy);
  } else {
    await_event(client.api, from.done_with_host_buffer);
  }
  return from.buffer;
}

RawProgram::RawProgram(RawClient client, const std::string& module, int num_devices,
                       const std::vector<std::vector<std::int64_t>>& shards)
    : client_(std::move(client)),
      num_devices_(static_cast<std::size_t>(num_devices)),
      num_arguments_(shards.size()) {
  pjrt::CompileOptions options;
  options.num_partitions = num_devices;
  for (int d = 0; d < num_devices; ++d) options.device_assignment.push_back(d);
  std::string bytes = options.serialize();
  auto program = make<PJRT_Program>(PJRT_Program_STRUCT_SIZE);
  std::string code = module, format = "mlir";
  program.code = code.data();
  program.code_size = code.size();
  program.format = format.data();
  program.format_size = format.size();
  auto compile = MESHARD_RAW_ARGUMENTS(PJRT_Client_Compile);
  compile.client = client_.client;
  compile.program = &program;
  compile.compile_options = bytes.data();
  compile.compile_options_size = bytes.size();
  check(client_.api, client_.api->PJRT_Client_Compile(&compile), "compile");
  executable_ = compile.executable;

  arguments_.resize(num_devices_);
  outputs_.assign(num_devices_, std::vector<PJRT_Buffer*>(num_outputs(client_.api, executable_)));
  for (std::size_t d = 0; d < num_devices_; ++d) {
    for (const auto& dims : shards) {
      std::size_t elements = 1;
      for (std::int64_t size : dims) elements *= static_cast<std::size_t>(size);
      std::vector<float> ones(elements, 1.0f);
      arguments_[d].push_back(send(client_, ones.data(), dims, static_cast<int>(d),
                                   PJRT_HostBufferSemantics_kImmutableOnlyDuringCall));
    }
    argument_lists_.push_back(arguments_[d].data());
    output_lists_.push_back(outputs_[d].data());
  }
  events_.resize(num_devices_);
}

RawProgram::~RawProgram() {
  for (auto& list : arguments_)
    for (PJRT_Buffer* buffer : list) destroy_buffer(client_.api, buffer);
  auto destroy = MESHARD_RAW_ARGUMENTS(PJRT_LoadedExecutable_Destroy);
  destroy.executable = executable_;
  client_.api->PJRT_LoadedExecutable_Destroy(&destroy);
}

void RawProgram::launch(bool wait_later) {
  auto options = make<PJRT_ExecuteOptions>(PJRT_ExecuteOptions_STRUCT_SIZE);
  options.launch_id = pjrt::next_launch_id();
  auto execute = MESHARD_RAW_ARGUMENTS(PJRT_LoadedExecutable_Execute);
  execute.executable = executable_;
  execute.options = &options;
  execute.argument_lists = argument_lists_.data();
  execute.num_devices = num_devices_;
  execute.num_args = num_arguments_;
  execute.output_lists = output_lists_.data();
  execute.device_complete_events = wait_later ? events_.data() : nullptr;
  check(client_.api, client_.api->PJRT_LoadedExecutable_Execute(&execute), "execute");
}

void RawProgram::await() {
  for (PJRT_Event* event : events_) await_event(client_.api, event);
}

void RawProgram::free_outputs() {
  for (auto& list : outputs_)
    for (PJRT_Buffer* buffer : list) destroy_buffer(client_.api, buffer);
}

void RawProgram::outputs_become_arguments() {
  for (std::size_t d = 0; d < num_devices_; ++d)
    for (std::size_t i = 0; i < num_arguments_; ++i) {
      destroy_buffer(client_.api, arguments_[d][i]);
      arguments_[d][i] = outputs_[d][i];
    }
}

}  // namespace meshard::bench
