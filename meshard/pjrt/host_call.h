// Calls from compiled programs into this process, through XLA's foreign function interface (FFI).
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/element_type.h"

namespace meshard::pjrt {

class Client;

/// The name under which programs make these calls: the target of a custom call with api_version 4
/// whose attributes are all strings.
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
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  /// The id of the device; -1 if the plugin does not report it.
  int device = -1;

  /// The value of an attribute; empty if there is none of this name.
  std::string_view attribute(std::string_view name) const;
};

/// Runs in a thread of the plugin, for several devices at once. An error, or an exception, becomes
/// the error of the launch.
using HostCallFunction = Result<void> (*)(const HostCall& call);

/// Lets the programs of `client` call `function`. There is one function for the process; a later
/// call replaces it.
/// @error unimplemented, naming the plugin and the reason: it has no FFI extension, or its devices
/// do not use host memory (only CPU devices do)
Result<void> accept_host_calls(const Client& client, HostCallFunction function);

}  // namespace meshard::pjrt
