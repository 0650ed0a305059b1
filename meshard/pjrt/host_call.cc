// Tested in tests/plugin/host_call_test.cc.
#include "meshard/pjrt/host_call.h"

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <string>

#include "meshard/pjrt/client.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/ffi_abi.h"

namespace meshard::pjrt {
namespace {

// A handler receives no data of its own, so each target has its own instance of handle().
struct Target {
  std::string_view name;  // empty: free
  std::atomic<HostCallFunction> function{nullptr};
};
constexpr std::size_t kTargets = 96;
constinit Target targets[kTargets];
constinit std::mutex targets_mutex;  // guards the names

// The oldest version of the interface, which all plugins accept.
constexpr int kMajor = 0, kMinor = 1;

// Arguments of older plugins have another layout.
constexpr ApiVersion kOldest{0, 81};

struct FfiExtension {
  PJRT_Extension_Base base;
  void* register_type;
  void* add_user_data;
  PJRT_Error* (*register_handler)(ffi::RegisterArgs*);
};

ffi::Error* make_error(const ffi::CallFrame& frame, ErrorCode code, const std::string& message) {
  ffi::ErrorCreateArgs args{sizeof(ffi::ErrorCreateArgs), nullptr, message.c_str(),
                            static_cast<int>(code)};
  return frame.api->create_error(&args);
}

std::vector<HostCallArray> arrays_of(const ffi::Values& values) {
  std::vector<HostCallArray> arrays;
  for (std::int64_t i = 0; i < values.size; ++i) {
    if (values.types[i] != ffi::kBuffer) continue;
    const auto& buffer = *static_cast<const ffi::Buffer*>(values.values[i]);
    arrays.push_back({element_type_of_primitive(buffer.element),
                      {buffer.dimensions, static_cast<std::size_t>(buffer.rank)},
                      buffer.data});
  }
  return arrays;
}

int device_of(const ffi::CallFrame& frame) {
  if (frame.api->struct_size < sizeof(ffi::Api) || frame.api->device_ordinal == nullptr) return -1;
  ffi::DeviceOrdinalArgs args{sizeof(ffi::DeviceOrdinalArgs), nullptr, frame.context, -1};
  return frame.api->device_ordinal(&args) == nullptr ? args.ordinal : -1;
}

void read_attribute(std::string_view name, int type, const void* value, HostCall& to) {
  constexpr int kPred = 1, kS32 = 4, kU8 = 6;  // numbers of XLA's PrimitiveType
  if (type == ffi::kString) {
    const auto& text = *static_cast<const ffi::Bytes*>(value);
    to.attributes.emplace_back(name, std::string_view(text.data, text.size));
  } else if (type == ffi::kArray) {
    const auto& array = *static_cast<const ffi::Array*>(value);
    if (array.element == kS32)
      to.numbers.emplace_back(name,
                              std::span(static_cast<const std::int32_t*>(array.data), array.size));
  } else if (type == ffi::kScalar) {
    const auto& scalar = *static_cast<const ffi::Scalar*>(value);
    if (scalar.element == kS32)
      to.numbers.emplace_back(name, std::span(static_cast<const std::int32_t*>(scalar.value), 1));
    if (scalar.element == kU8 || scalar.element == kPred)
      to.letters.emplace_back(name, *static_cast<const char*>(scalar.value));
  }
}

HostCall call_of(const ffi::CallFrame& frame) {
  HostCall call;
  call.arguments = arrays_of(frame.arguments);
  call.results = arrays_of(frame.results);
  const ffi::Attributes& attributes = frame.attributes;
  for (std::int64_t i = 0; i < attributes.size; ++i)
    read_attribute({attributes.names[i]->data, attributes.names[i]->size}, attributes.types[i],
                   attributes.values[i], call);
  call.device = device_of(frame);
  return call;
}

// Returns true if the plugin only asks for the version.
bool answer_metadata(const ffi::CallFrame& frame) {
  for (ffi::Extension* each = frame.extensions; each != nullptr; each = each->next) {
    if (each->type != ffi::kMetadataExtension) continue;
    ffi::Metadata& metadata = *reinterpret_cast<ffi::MetadataExtension*>(each)->metadata;
    metadata.version.major = kMajor;
    metadata.version.minor = kMinor;
    return true;
  }
  return false;
}

ffi::Error* serve(const ffi::CallFrame& frame, const Target& target) {
  if (answer_metadata(frame) || frame.stage != ffi::kExecute) return nullptr;
  try {
    Result<void> done = target.function.load()(call_of(frame));
    if (done.ok()) return nullptr;
    return make_error(frame, done.error().code(), done.error().what());
  } catch (const Error& error) {
    return make_error(frame, error.code(), error.what());
  } catch (const std::exception& error) {
    return make_error(frame, ErrorCode::kUnknown, error.what());
  } catch (...) {
    return make_error(frame, ErrorCode::kUnknown, "an exception that is not a std::exception");
  }
}

template <std::size_t kTarget>
ffi::Error* handle(ffi::CallFrame* frame) {
  return serve(*frame, targets[kTarget]);
}

// The handler of all missing targets.
ffi::Error* refuse(ffi::CallFrame* frame) {
  if (answer_metadata(*frame) || frame->stage != ffi::kExecute) return nullptr;
  return make_error(*frame, ErrorCode::kUnimplemented, "this process has no handler for the call");
}

constexpr auto kHandlers = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array{&handle<kIndex>...};
}
(std::make_index_sequence<kTargets>());

// The index of a target's instance; kTargets if all are taken.
std::size_t index_of_target(std::string_view name) {
  std::lock_guard lock(targets_mutex);
  for (std::size_t i = 0; i < kTargets; ++i) {
    if (targets[i].name.empty()) targets[i].name = name;
    if (targets[i].name == name) return i;
  }
  return kTargets;
}

Error cannot(const Client& client, const std::string& why) {
  return Error(ErrorCode::kUnimplemented,
               cat("[host_call] programs on platform ", client.platform(), " (plugin ",
                   client.plugin().path(), ") cannot call functions of this process: ", why));
}

// The plugin's extension, if its devices can call functions of this process.
Result<const FfiExtension*> extension_of(const Client& client) {
  if (client.platform() != "cpu")
    return cannot(client, "the elements are in the memory of the device; only CPU devices can");
  if (client.plugin().version() < kOldest)
    return cannot(client,
                  cat("its PJRT API ", client.plugin().version(), " is older than ", kOldest));
  const FfiExtension* found = nullptr;
  for (const PJRT_Extension_Base* each = client.plugin().api()->extension_start; each;
       each = each->next)
    if (type_of(*each) == kFfiExtension && each->struct_size >= sizeof(FfiExtension))
      found = reinterpret_cast<const FfiExtension*>(each);
  if (found == nullptr) return cannot(client, "the plugin has no FFI extension");
  return found;
}

// @param target outlives the process
Result<void> register_handler(const Client& client, const FfiExtension& extension,
                              std::string_view target, void* handler) {
  constexpr std::string_view kPlatform = "Host";  // XLA's name for CPUs
  ffi::RegisterArgs args{sizeof(ffi::RegisterArgs),
                         target.data(),
                         target.size(),
                         handler,
                         kPlatform.data(),
                         kPlatform.size(),
                         0};
  // Some plugins drop this call's error; a program that uses the target then does not compile.
  return internal::take_error(client.plugin().api(), extension.register_handler(&args),
                              "PJRT_FFI_Register_Handler");
}

}  // namespace

std::string_view HostCall::attribute(std::string_view name) const {
  for (const auto& [each, value] : attributes)
    if (each == name) return value;
  return {};
}

std::span<const std::int32_t> HostCall::number_list(std::string_view name) const {
  for (const auto& [each, values] : numbers)
    if (each == name) return values;
  return {};
}

Result<void> accept_host_calls(const Client& client, std::string_view target,
                               HostCallFunction function) {
  MESHARD_ASSIGN_OR_RETURN(const FfiExtension* extension, extension_of(client));
  std::size_t index = index_of_target(target);
  if (index == kTargets)
    return Error(ErrorCode::kResourceExhausted,
                 cat("[host_call] there are more than ", kTargets, " targets: ", target));
  targets[index].function = function;
  return register_handler(client, *extension, target, reinterpret_cast<void*>(kHandlers[index]));
}

Result<void> accept_missing_target(const Client& client, std::string_view target) {
  MESHARD_ASSIGN_OR_RETURN(const FfiExtension* extension, extension_of(client));
  static std::deque<std::string>& names = *new std::deque<std::string>;  // the plugin's threads
                                                                         // may outlive statics
  static constinit std::mutex names_mutex;
  std::string_view kept;
  {
    std::lock_guard lock(names_mutex);
    kept = names.emplace_back(target);
  }
  return register_handler(client, *extension, kept, reinterpret_cast<void*>(&refuse));
}

}  // namespace meshard::pjrt
