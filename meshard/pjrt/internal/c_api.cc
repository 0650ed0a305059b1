// Tested in tests/plugin/pjrt_fake_test.cc.
#include "meshard/pjrt/internal/c_api.h"

#include <array>
#include <cstring>

#include "meshard/pjrt/array_type.h"
#include "meshard/pjrt/plugin.h"

namespace meshard::pjrt::internal {
namespace {

// Numbers are passed through without a table, so they must equal the header's.
constexpr int number(ElementType type) { return static_cast<int>(type); }
static_assert(number(ElementType::kPred) == PJRT_Buffer_Type_PRED);
static_assert(number(ElementType::kU64) == PJRT_Buffer_Type_U64);
static_assert(number(ElementType::kF64) == PJRT_Buffer_Type_F64);
static_assert(number(ElementType::kBf16) == PJRT_Buffer_Type_BF16);
static_assert(number(ElementType::kC128) == PJRT_Buffer_Type_C128);
static_assert(number(ElementType::kF8E5M2) == PJRT_Buffer_Type_F8E5M2);
static_assert(number(ElementType::kF8E4M3Fn) == PJRT_Buffer_Type_F8E4M3FN);
static_assert(number(ElementType::kF8E4M3B11Fnuz) == PJRT_Buffer_Type_F8E4M3B11FNUZ);
static_assert(number(ElementType::kF8E5M2Fnuz) == PJRT_Buffer_Type_F8E5M2FNUZ);
static_assert(number(ElementType::kF8E4M3Fnuz) == PJRT_Buffer_Type_F8E4M3FNUZ);
static_assert(number(ElementType::kU4) == PJRT_Buffer_Type_U4);
static_assert(number(ElementType::kToken) == PJRT_Buffer_Type_TOKEN);
static_assert(number(ElementType::kU2) == PJRT_Buffer_Type_U2);
static_assert(number(ElementType::kF8E3M4) == PJRT_Buffer_Type_F8E3M4);
static_assert(number(ElementType::kF8E8M0Fnu) == PJRT_Buffer_Type_F8E8M0FNU);
static_assert(number(ElementType::kF4E2M1Fn) == PJRT_Buffer_Type_F4E2M1FN);

void free_error(const PJRT_Api* api, PJRT_Error* error) {
  MESHARD_PJRT_ARGS(PJRT_Error_Destroy, args);
  args.error = error;
  api->PJRT_Error_Destroy(&args);
}

}  // namespace

Error to_error(const PJRT_Api* api, PJRT_Error* error, std::string_view entry) {
  MESHARD_PJRT_ARGS(PJRT_Error_Message, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  MESHARD_PJRT_ARGS(PJRT_Error_GetCode, code);
  code.error = error;
  code.code = PJRT_Error_Code_UNKNOWN;
  if (PJRT_Error* second = api->PJRT_Error_GetCode(&code)) free_error(api, second);
  Error result(static_cast<ErrorCode>(code.code),
               cat("[", entry, "] ", std::string_view(message.message, message.message_size)));
  free_error(api, error);
  return result;
}

Error missing_entry(const PJRT_Api* api, std::string_view entry) {
  return Error(ErrorCode::kUnimplemented,
               cat("[pjrt] the plugin (PJRT API ", api->pjrt_api_version.major_version, ".",
                   api->pjrt_api_version.minor_version, ") has no ", entry));
}

std::vector<NamedValue> read_named_values(const PJRT_NamedValue* values, std::size_t count) {
  std::vector<NamedValue> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& from = values[i];
    NamedValue to;
    to.name.assign(from.name, from.name_size);
    switch (from.type) {
      case PJRT_NamedValue_kString:
        to.value = std::string(from.string_value, from.value_size);
        break;
      case PJRT_NamedValue_kInt64: to.value = from.int64_value; break;
      case PJRT_NamedValue_kInt64List:
        to.value = std::vector<std::int64_t>(from.int64_array_value,
                                             from.int64_array_value + from.value_size);
        break;
      case PJRT_NamedValue_kFloat: to.value = from.float_value; break;
      case PJRT_NamedValue_kBool: to.value = from.bool_value; break;
    }
    result.push_back(std::move(to));
  }
  return result;
}

std::vector<PJRT_NamedValue> view_named_values(std::span<const NamedValue> values) {
  std::vector<PJRT_NamedValue> result;
  result.reserve(values.size());
  for (const NamedValue& from : values) {
    PJRT_NamedValue to{};
    to.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    to.name = from.name.data();
    to.name_size = from.name.size();
    to.value_size = 1;
    if (auto* text = std::get_if<std::string>(&from.value)) {
      to.type = PJRT_NamedValue_kString;
      to.string_value = text->data();
      to.value_size = text->size();
    } else if (auto* number = std::get_if<std::int64_t>(&from.value)) {
      to.type = PJRT_NamedValue_kInt64;
      to.int64_value = *number;
    } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&from.value)) {
      to.type = PJRT_NamedValue_kInt64List;
      to.int64_array_value = list->data();
      to.value_size = list->size();
    } else if (auto* real = std::get_if<float>(&from.value)) {
      to.type = PJRT_NamedValue_kFloat;
      to.float_value = *real;
    } else {
      to.type = PJRT_NamedValue_kBool;
      to.bool_value = std::get<bool>(from.value);
    }
    result.push_back(to);
  }
  return result;
}

void destroy(const PJRT_Api* api, PJRT_Event* event) noexcept {
  if (event == nullptr) return;
  MESHARD_PJRT_ARGS(PJRT_Event_Destroy, args);
  args.event = event;
  if (PJRT_Error* error = api->PJRT_Event_Destroy(&args)) free_error(api, error);
}

void destroy(const PJRT_Api* api, PJRT_Buffer* buffer) noexcept {
  if (buffer == nullptr) return;
  MESHARD_PJRT_ARGS(PJRT_Buffer_Destroy, args);
  args.buffer = buffer;
  if (PJRT_Error* error = api->PJRT_Buffer_Destroy(&args)) free_error(api, error);
}

void destroy(const PJRT_Api* api, PJRT_AsyncHostToDeviceTransferManager* transfer) noexcept {
  MESHARD_PJRT_ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, args);
  args.transfer_manager = transfer;
  (void)MESHARD_PJRT_CALL(api, PJRT_AsyncHostToDeviceTransferManager_Destroy, args);
}

void destroy(const PJRT_Api* api, PJRT_Executable* executable) noexcept {
  MESHARD_PJRT_ARGS(PJRT_Executable_Destroy, args);
  args.executable = executable;
  (void)MESHARD_PJRT_CALL(api, PJRT_Executable_Destroy, args);
}

void destroy(const PJRT_Api* api, PJRT_LoadedExecutable* executable) noexcept {
  MESHARD_PJRT_ARGS(PJRT_LoadedExecutable_Destroy, args);
  args.executable = executable;
  (void)MESHARD_PJRT_CALL(api, PJRT_LoadedExecutable_Destroy, args);
}

void destroy(const PJRT_Api* api, PJRT_TopologyDescription* topology) noexcept {
  MESHARD_PJRT_ARGS(PJRT_TopologyDescription_Destroy, args);
  args.topology = topology;
  (void)MESHARD_PJRT_CALL(api, PJRT_TopologyDescription_Destroy, args);
}

}  // namespace meshard::pjrt::internal

namespace meshard::pjrt {
namespace {

// 0 to 15 come from the header of API 0.81; 16, 18 and 19 are reported by newer plugins.
constexpr std::array<std::string_view, 20> kNames = {
    "GpuCustomCall",
    "Profiler",
    "CustomPartitioner",
    "Stream",
    "Layouts",
    "FFI",
    "MemoryDescriptions",
    "Triton",
    "RawBuffer",
    "PhaseCompile",
    "Example",
    "Unknown",
    "CrossHostTransfers",
    "ExecutableMetadata",
    "Callback",
    "HostAllocator",
    "TpuTopology",
    "",
    "Megascale",
    "Shardings",
};

}  // namespace

int type_of(const PJRT_Extension_Base& extension) {
  int type;
  static_assert(sizeof extension.type == sizeof type);
  std::memcpy(&type, &extension.type, sizeof type);
  return type;
}

std::string_view extension_name(int type) {
  auto index = static_cast<std::size_t>(type);
  return index < kNames.size() && !kNames[index].empty() ? kNames[index] : "unknown";
}

std::string_view Extension::name() const { return extension_name(type); }

}  // namespace meshard::pjrt
