// Tested in tests/e2e/host_calls_test.cc.
#include "meshard/runtime/internal/host_calls.h"

#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/lapack/lapack_calls.h"
#include "meshard/lowering/nan_checks.h"
#include "meshard/ops/debug_print.h"
#include "meshard/ops/definition/host_call.h"
#include "meshard/ops/pure_callback.h"
#include "meshard/pjrt/host_call.h"
#include "meshard/runtime/device_array.h"
#include "meshard/stablehlo/outside_ops.h"

namespace meshard::internal {
namespace {

// Calls have the plugin's ids, which begin with 0 in each process of a run.
std::atomic<int> id_of_device_0{0};

std::int64_t number_in(std::string_view text) {
  std::int64_t number = -1;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

TensorType type_of(const pjrt::HostCallArray& array) {
  Dimensions sizes;
  for (std::int64_t size : array.dimensions) sizes.push_back(size);
  return {dtype_of_element(array.element).value(), Shape(std::move(sizes))};
}

HostArray copy_of(const pjrt::HostCallArray& array) {
  return HostArray::copy_of(type_of(array), array.data);
}

// Entry `index` of a list separated by `;`.
std::string_view entry_of(std::string_view list, std::int64_t index) {
  for (; index > 0; --index) {
    std::size_t end = list.find(';');
    if (end == std::string_view::npos) return "-";
    list.remove_prefix(end + 1);
  }
  return list.substr(0, list.find(';'));
}

Result<void> print(const pjrt::HostCall& call) {
  std::span<const pjrt::HostCallArray> values = call.arguments;
  std::string line;
  if (std::string_view places = call.attribute(kPlaces); !places.empty()) {
    std::uint32_t partition = 0;
    std::memcpy(&partition, values.back().data, sizeof partition);
    values = values.first(values.size() - 1);
    std::string_view place = entry_of(places, partition);
    if (place == "-") return {};
    if (!place.empty()) line = cat("[device ", call.device + id_of_device_0, ", ", place, "] ");
  }
  std::vector<std::string> texts;
  for (const pjrt::HostCallArray& value : values) texts.push_back(elements_text(copy_of(value)));
  print_debug_line(line + formatted(call.attribute("text"), texts));
  return {};
}

Result<void> call_function(const pjrt::HostCall& call) {
  std::vector<HostArray> arguments;
  std::vector<TensorType> types;
  for (const pjrt::HostCallArray& argument : call.arguments) arguments.push_back(copy_of(argument));
  for (const pjrt::HostCallArray& result : call.results) types.push_back(type_of(result));
  std::vector<HostArray> results =
      call_host_function(number_in(call.attribute("function")), arguments, types);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].size() > 0)
      std::memcpy(call.results[i].data, results[i].bytes(),
                  static_cast<std::size_t>(results[i].size_in_bytes()));
  return {};
}

Result<void> report_nan(const pjrt::HostCall& call) {
  if (*static_cast<const std::uint8_t*>(call.arguments.at(0).data) == 0) return {};
  std::shared_ptr<NanChecks> checks = NanChecks::find(number_in(call.attribute("program")));
  if (checks) checks->report(static_cast<std::size_t>(number_in(call.attribute("check"))));
  return {};
}

Result<void> serve(const pjrt::HostCall& call) {
  std::string_view kind = call.attribute("kind");
  if (kind == kFunctionCall) return call_function(call);
  // The result of an effect has no meaning; it is set so that runs are equal.
  for (const pjrt::HostCallArray& result : call.results)
    *static_cast<std::uint8_t*>(result.data) = 0;
  if (kind == kPrintCall) return print(call);
  if (kind == kNanCall) return report_nan(call);
  return Error(ErrorCode::kUnimplemented, cat("[host_call] unknown kind \"", kind, "\""));
}

}  // namespace

Result<void> accept_host_calls(const pjrt::Client& client) {
  const pjrt::Device& first = *client.addressable_devices()[0];
  id_of_device_0 = first.id() - first.plugin_id();
  return pjrt::accept_host_calls(client, serve);
}

Result<void> accept_lapack_calls(const pjrt::Client& client, std::string_view module) {
  // Most programs call none, and reading one takes as long as writing it.
  if (client.platform() != "cpu" || module.find("lapack_") == module.npos) return {};
  MESHARD_ASSIGN_OR_RETURN(std::vector<stablehlo::OutsideOp> ops, stablehlo::outside_ops(module));
  for (const stablehlo::OutsideOp& op : ops)
    if (is_lapack_target(op.target)) MESHARD_RETURN_IF_ERROR(accept_lapack_call(client, op.target));
  return {};
}

QuirkSet quirks_here(const pjrt::Client& client) {
  QuirkSet quirks = client.quirks();
  if (quirks.has(Quirk::kLapackCalls) && !accept_lapack_call(client, "lapack_dgetrf_ffi").ok())
    return quirks.without(Quirk::kLapackCalls);
  return quirks;
}

}  // namespace meshard::internal
