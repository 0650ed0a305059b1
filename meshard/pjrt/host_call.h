// Calls from compiled programs into this process, through XLA's foreign function interface (FFI).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"

namespace meshard::pjrt {

class Client;

/// The target under which programs call functions of users. Targets are custom calls with
/// api_version 4 whose attributes are strings, i32 numbers, arrays of i32, and ui8 or i1 numbers.
inline constexpr std::string_view kHostCallTarget = "meshard.host_call";

/// A view of an argument or result of a host call: dense, row-major elements in host memory.
struct HostCallArray {
  ElementType element = ElementType::kInvalid;
  std::span<const std::int64_t> dimensions;
  void* data = nullptr;
};

/// A view of one call, made by one device. Valid during the call.
struct HostCall {
  std::vector<HostCallArray> arguments;
  /// Their memory is uninitialized; the function fills it.
  std::vector<HostCallArray> results;
  /// The attributes that are strings.
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  /// The attributes that are i32 numbers or arrays of them. Both are sorted by name.
  std::vector<std::pair<std::string_view, std::span<const std::int32_t>>> numbers;
  /// The attributes that are numbers of 8 bits without a sign, such as letters, or i1.
  std::vector<std::pair<std::string_view, char>> letters;
  /// The id of the device; -1 if the plugin does not report it.
  int device = -1;

  /// The value of an attribute; empty if there is none of this name.
  std::string_view attribute(std::string_view name) const;
  /// The numbers of an attribute; empty if there is none of this name.
  std::span<const std::int32_t> number_list(std::string_view name) const;
};

/// Runs in a thread of the plugin, for several devices at once. An error, or an exception, becomes
/// the error of the launch.
using HostCallFunction = Result<void> (*)(const HostCall& call);

/// Lets the programs of `client` call `function` under the name `target`. There is one function for
/// each target in the process; a later call replaces it.
/// @pre `target` outlives the process, as a literal does
/// @error unimplemented, naming the plugin and the reason: it has no FFI extension, or its devices
/// do not use host memory (only CPU devices do); resource exhausted for more than 96 targets
Result<void> accept_host_calls(const Client& client, std::string_view target,
                               HostCallFunction function);
/// The same for kHostCallTarget.
inline Result<void> accept_host_calls(const Client& client, HostCallFunction function) {
  return accept_host_calls(client, kHostCallTarget, function);
}

/// Lets the client compile programs that call `target`, which this process does not have: what
/// handles it is elsewhere, as a Python callback of JAX is. A call fails when it runs.
/// @error as accept_host_calls(), without its limit; the plugin's error if it has such a target
Result<void> accept_missing_target(const Client& client, std::string_view target);

}  // namespace meshard::pjrt
