// Tested in tests/plugin/pjrt_conformance_test.cc.
#include "meshard/pjrt/client.h"

#include <utility>

#include "meshard/pjrt/internal/callbacks.h"
#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/process_end.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard::pjrt {
namespace {

struct Release {
  std::function<void()> call;
};

// The caller may have built the type without make().
Result<ArrayType> recheck(const ArrayType& type) {
  return ArrayType::make(type.element, {type.dimensions.data(), type.dimensions.size()});
}

void call_release(void*, void* argument) {
  std::unique_ptr<Release> release(static_cast<Release*>(argument));
  if (release->call) internal::call_soon(std::move(release->call));
}

}  // namespace

Result<Client> Client::create(Plugin plugin, std::span<const NamedValue> options,
                              std::span<const ClientOptionSpec> more_options, std::string_view name,
                              const ProcessDevices* run, std::shared_ptr<KeyValueStore> store) {
  MESHARD_RETURN_IF_ERROR(check_client_options(options, more_options));
  auto views = internal::view_named_values(options);
  MESHARD_PJRT_ARGS(PJRT_Client_Create, args);
  args.create_options = views.data();
  args.num_options = views.size();
  if (store) internal::set_key_value_callbacks(args, *store);
  internal::PluginWork work;  // the process must not end during the call
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(plugin.api(), PJRT_Client_Create, args));
  ClientRef state(new internal::ClientState(plugin, args.client, name, std::move(store)));
  MESHARD_RETURN_IF_ERROR(state->initialize(run));
  return Client(std::move(state));
}

const Plugin& Client::plugin() const { return state_->plugin; }
const std::string& Client::platform() const { return state_->platform; }
const std::string& Client::name() const { return state_->name; }
const std::string& Client::platform_version() const { return state_->platform_version; }
int Client::process_index() const { return state_->process_index; }
QuirkSet Client::quirks() const { return state_->quirks; }
const LaunchRules& Client::rules() const { return state_->rules; }
std::size_t Client::device_count() const { return state_->devices.size(); }
const Device& Client::device(std::size_t index) const { return *state_->devices.at(index); }
std::span<const Device* const> Client::addressable_devices() const { return state_->addressable; }
PJRT_Client* Client::raw() const { return state_->raw; }

const DeviceList& Client::device_list(std::span<const Device* const> devices) const {
  return *state_->intern(devices);
}

const Device* Client::find_device(std::int64_t id) const {
  if (!std::in_range<int>(id)) return nullptr;  // PJRT device ids are ints
  auto found = state_->by_id.find(static_cast<int>(id));
  return found == state_->by_id.end() ? nullptr : found->second;
}

Result<void> Client::check_options(const CompileOptions& options) const {
  MESHARD_RETURN_IF_ERROR(options.check());
  for (int id : options.device_assignment)
    if (find_device(id) == nullptr)
      return Error(ErrorCode::kInvalidArgument, cat("[compile] the client has no device ", id));
  if (options.device_assignment.empty() &&
      static_cast<std::size_t>(options.num_devices()) > device_count())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[compile] the program needs ", options.num_devices(),
                     " devices, the client has ", device_count()));
  return {};
}

Result<void> Client::use_plugin_ids(std::vector<int>& device_assignment) const {
  for (int& id : device_assignment) {
    const Device& device = *find_device(id);
    if (device.raw() == nullptr)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[compile] device ", id, " belongs to process ", device.process_index(),
                       ", which the plugin does not report"));
    id = device.plugin_id();
  }
  return {};
}

// The serialized options with a device assignment. If it is missing, plugins choose their own,
// which may differ from ours.
Result<std::string> Client::complete_options(const CompileOptions& options) const {
  MESHARD_RETURN_IF_ERROR(check_options(options));
  if (options.portable) return options.serialize();
  CompileOptions complete = options;
  if (options.device_assignment.empty())
    for (int i = 0; i < options.num_devices(); ++i)
      complete.device_assignment.push_back(state_->devices[static_cast<std::size_t>(i)]->id());
  MESHARD_RETURN_IF_ERROR(use_plugin_ids(complete.device_assignment));
  return complete.serialize();
}

Result<LoadedExecutable> Client::compile(std::string_view module,
                                         const CompileOptions& options) const {
  return compile_program(module, "mlir", options);
}

Result<LoadedExecutable> Client::compile_hlo(std::string_view module,
                                             const CompileOptions& options) const {
  return compile_program(module, "hlo", options);
}

Result<LoadedExecutable> Client::compile_program(std::string_view module, std::string_view format,
                                                 const CompileOptions& options) const {
  if (module.empty()) return Error(ErrorCode::kInvalidArgument, "[compile] the module is empty");
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, complete_options(options));
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(module.data());  // not written in this direction
  program.code_size = module.size();
  program.format = format.data();
  program.format_size = format.size();
  MESHARD_PJRT_ARGS(PJRT_Client_Compile, args);
  args.client = state_->raw;
  args.program = &program;
  args.compile_options = bytes.data();
  args.compile_options_size = bytes.size();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(state_->api, PJRT_Client_Compile, args));
  return LoadedExecutable::make(state_, args.executable, nullptr);
}

Result<LoadedExecutable> Client::deserialize_and_load(std::string_view serialized,
                                                      const CompileOptions* options,
                                                      const ExecutableSignature* signature) const {
  if (serialized.empty())
    return Error(ErrorCode::kInvalidArgument, "[deserialize] the serialized executable is empty");
  std::string bytes;
  MESHARD_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad, args);
  args.client = state_->raw;
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  if (options != nullptr) {
    MESHARD_ASSIGN_OR_RETURN(bytes, complete_options(*options));
    args.overridden_serialized_compile_options = bytes.data();
    args.overridden_serialized_compile_options_size = bytes.size();
  }
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(state_->api, PJRT_Executable_DeserializeAndLoad, args));
  return LoadedExecutable::make(state_, args.loaded_executable, signature);
}

Result<LoadedExecutable> Client::load_for_each(std::string_view serialized,
                                               const ExecutableSignature& signature,
                                               const DeviceList& devices) const {
  if (signature.has_collectives || signature.reads_partition_id)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[load_for_each] the program ",
                     signature.has_collectives ? "has collectives" : "reads the partition id",
                     ", so that its parts differ: ", signature.to_string()));
  CompileOptions options;
  options.portable = true;
  MESHARD_ASSIGN_OR_RETURN(LoadedExecutable loaded,
                           deserialize_and_load(serialized, &options, &signature));
  loaded.set_parts(devices);
  return loaded;
}

Result<const Device*> Client::check_device(const Device& device, std::string_view operation) const {
  if (state_->find(device.raw()) == &device && device.addressable()) return &device;
  return Error(ErrorCode::kInvalidArgument, cat("[", operation, "] device ", device.id(),
                                                " is not an addressable device of this client"));
}

Buffer Client::make_buffer(PJRT_Buffer* raw, const ArrayType& type, const Device* device) const {
  internal::add_references(state_.get(), 1);
  return Buffer(state_.get(), raw, state_->intern(type), device);
}

Result<SentBuffer> Client::buffer_from_host(const HostArrayView& array, HostSemantics semantics,
                                            const Device& device, const Memory* memory) const {
  MESHARD_ASSIGN_OR_RETURN(const Device* target, check_device(device, "buffer_from_host"));
  MESHARD_ASSIGN_OR_RETURN(ArrayType type, ArrayType::make(array.element, array.dimensions));
  static constexpr char kNothing[64] = {};
  bool empty = type.element_count() == 0;
  if (array.data == nullptr && !empty)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[buffer_from_host] the data pointer is null for ", type));
  if (!array.byte_strides.empty() && array.byte_strides.size() != array.dimensions.size())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[buffer_from_host] got ", array.byte_strides.size(), " strides for ", type));
  if (static_cast<unsigned>(semantics) > 3)
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[buffer_from_host] invalid host buffer semantics ", static_cast<int>(semantics)));
  MESHARD_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer, args);
  args.client = state_->raw;
  args.data = array.data == nullptr ? kNothing : array.data;
  args.type = static_cast<PJRT_Buffer_Type>(type.element);
  args.dims = type.dimensions.data();
  args.num_dims = type.dimensions.size();
  args.byte_strides = array.byte_strides.data();
  args.num_byte_strides = array.byte_strides.size();
  args.host_buffer_semantics = static_cast<PJRT_HostBufferSemantics>(semantics);
  args.device = target->raw();
  if (memory != nullptr) args.memory = memory->raw();
  internal::PluginWork work;
  MESHARD_RETURN_IF_ERROR(MESHARD_PJRT_CALL(state_->api, PJRT_Client_BufferFromHostBuffer, args));
  return SentBuffer{make_buffer(args.buffer, type, target),
                    Event(state_, state_->api, args.done_with_host_buffer)};
}

Result<Buffer> Client::uninitialized_buffer(const ArrayType& type, const Device& device) const {
  MESHARD_ASSIGN_OR_RETURN(const Device* target, check_device(device, "uninitialized_buffer"));
  MESHARD_ASSIGN_OR_RETURN(ArrayType checked, recheck(type));
  MESHARD_PJRT_ARGS(PJRT_Client_CreateUninitializedBuffer, args);
  args.client = state_->raw;
  args.shape_dims = checked.dimensions.data();
  args.shape_num_dims = checked.dimensions.size();
  args.shape_element_type = static_cast<PJRT_Buffer_Type>(checked.element);
  args.device = target->raw();
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(state_->api, PJRT_Client_CreateUninitializedBuffer, args));
  return make_buffer(args.buffer, checked, target);
}

Result<Buffer> Client::view_device_memory(void* address, const ArrayType& type,
                                          const Device& device,
                                          std::function<void()> on_release) const {
  MESHARD_ASSIGN_OR_RETURN(const Device* target, check_device(device, "view_device_memory"));
  MESHARD_ASSIGN_OR_RETURN(ArrayType checked, recheck(type));
  if (address == nullptr)
    return Error(ErrorCode::kInvalidArgument, "[view_device_memory] the address is null");
  auto release = std::make_unique<Release>(Release{std::move(on_release)});
  MESHARD_PJRT_ARGS(PJRT_Client_CreateViewOfDeviceBuffer, args);
  args.client = state_->raw;
  args.device_buffer_ptr = address;
  args.dims = checked.dimensions.data();
  args.num_dims = checked.dimensions.size();
  args.element_type = static_cast<PJRT_Buffer_Type>(checked.element);
  args.device = target->raw();
  args.on_delete_callback = call_release;  // must not be null: the CPU plugin would abort
  args.on_delete_callback_arg = release.get();
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(state_->api, PJRT_Client_CreateViewOfDeviceBuffer, args));
  (void)release.release();  // call_release frees it
  return make_buffer(args.buffer, checked, target);
}

Result<HostToDeviceTransfer> Client::begin_transfer(std::span<const ArrayType> types,
                                                    const Device& device) const {
  MESHARD_ASSIGN_OR_RETURN(const Device* target, check_device(device, "begin_transfer"));
  if (types.empty())
    return Error(ErrorCode::kInvalidArgument, "[begin_transfer] the list of buffer types is empty");
  MESHARD_ASSIGN_OR_RETURN(Memory memory, target->default_memory());
  std::vector<const ArrayType*> interned;
  std::vector<PJRT_ShapeSpec> specs;
  for (const ArrayType& type : types) {
    MESHARD_ASSIGN_OR_RETURN(ArrayType checked, recheck(type));
    interned.push_back(state_->intern(checked));
    PJRT_ShapeSpec spec{};
    spec.struct_size = PJRT_ShapeSpec_STRUCT_SIZE;
    spec.dims = interned.back()->dimensions.data();
    spec.num_dims = interned.back()->dimensions.size();
    spec.element_type = static_cast<PJRT_Buffer_Type>(type.element);
    specs.push_back(spec);
  }
  MESHARD_PJRT_ARGS(PJRT_Client_CreateBuffersForAsyncHostToDevice, args);
  args.client = state_->raw;
  args.shape_specs = specs.data();
  args.num_shape_specs = specs.size();
  args.memory = memory.raw();
  MESHARD_RETURN_IF_ERROR(
      MESHARD_PJRT_CALL(state_->api, PJRT_Client_CreateBuffersForAsyncHostToDevice, args));
  return HostToDeviceTransfer(state_, args.transfer_manager, std::move(interned), target);
}

std::size_t Client::launches_in_flight() const {
  std::lock_guard lock(state_->launch_mutex);
  std::size_t count = 0;
  for (const internal::LaunchRecord& record : state_->in_flight) count += !record.is_through();
  return count;
}

void Client::await_launches() const { state_->await_launches(); }

void Client::await_last_launches() const { state_->await_last_launches(); }
void Client::await_failed_launches() const { state_->await_failed_launches(); }
void finish_callbacks() { internal::finish_callbacks(); }
bool Client::is_wedged() const { return state_->wedged; }

}  // namespace meshard::pjrt
