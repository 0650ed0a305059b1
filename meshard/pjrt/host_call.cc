// Tested in tests/plugin/host_call_test.cc.
#include "meshard/pjrt/host_call.h"

#include <atomic>
#include <exception>
#include <string>

#include "meshard/pjrt/client.h"
#include "meshard/pjrt/executable_signature.h"
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/internal/extensions.h"
#include "meshard/pjrt/internal/ffi_abi.h"

namespace meshard::pjrt {
namespace {

constinit std::atomic<HostCallFunction> the_function{nullptr};

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

HostCall call_of(const ffi::CallFrame& frame) {
  HostCall call;
  call.arguments = arrays_of(frame.arguments);
  call.results = arrays_of(frame.results);
  for (std::int64_t i = 0; i < frame.attributes.size; ++i) {
    if (frame.attributes.types[i] != ffi::kString) continue;
    const ffi::Bytes& name = *frame.attributes.names[i];
    const auto& value = *static_cast<const ffi::Bytes*>(frame.attributes.values[i]);
    call.attributes.emplace_back(std::string_view(name.data, name.size),
                                 std::string_view(value.data, value.size));
  }
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

ffi::Error* handle(ffi::CallFrame* frame) {
  if (answer_metadata(*frame) || frame->stage != ffi::kExecute) return nullptr;
  try {
    Result<void> done = the_function.load()(call_of(*frame));
    if (done.ok()) return nullptr;
    return make_error(*frame, done.error().code(), done.error().what());
  } catch (const Error& error) {
    return make_error(*frame, error.code(), error.what());
  } catch (const std::exception& error) {
    return make_error(*frame, ErrorCode::kUnknown, error.what());
  } catch (...) {
    return make_error(*frame, ErrorCode::kUnknown, "an exception that is not a std::exception");
  }
}

Error cannot(const Client& client, const std::string& why) {
  return Error(ErrorCode::kUnimplemented,
               cat("[host_call] programs on platform ", client.platform(), " (plugin ",
                   client.plugin().path(), ") cannot call functions of this process: ", why));
}

}  // namespace

std::string_view HostCall::attribute(std::string_view name) const {
  for (const auto& [each, value] : attributes)
    if (each == name) return value;
  return {};
}

Result<void> accept_host_calls(const Client& client, HostCallFunction function) {
  if (client.platform() != "cpu")
    return cannot(client, "the elements are in the memory of the device; only CPU devices can");
  if (client.plugin().version() < kOldest)
    return cannot(client,
                  cat("its PJRT API ", client.plugin().version(), " is older than ", kOldest));
  const PJRT_Api* api = client.plugin().api();
  const FfiExtension* found = nullptr;
  for (const PJRT_Extension_Base* each = api->extension_start; each; each = each->next)
    if (type_of(*each) == kFfiExtension && each->struct_size >= sizeof(FfiExtension))
      found = reinterpret_cast<const FfiExtension*>(each);
  if (found == nullptr) return cannot(client, "the plugin has no FFI extension");
  the_function = function;
  constexpr std::string_view kPlatform = "Host";  // XLA's name for CPUs
  ffi::RegisterArgs args{sizeof(ffi::RegisterArgs),
                         kHostCallTarget.data(),
                         kHostCallTarget.size(),
                         reinterpret_cast<void*>(handle),
                         kPlatform.data(),
                         kPlatform.size(),
                         0};
  // Some plugins drop this call's error; a program that uses the target then does not compile.
  return internal::take_error(api, found->register_handler(&args), "PJRT_FFI_Register_Handler");
}

}  // namespace meshard::pjrt
