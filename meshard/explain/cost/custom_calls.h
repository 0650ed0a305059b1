// Custom calls of a compiled module, and what is known of their costs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/hlo/module.h"

namespace meshard {

class Executions;

/// Value type: the cost of one execution of a custom call on one device.
struct CustomCallCost {
  double flops = 0;
  /// Bytes read from and written to main memory. None: the operands and results that are in main
  /// memory, each once.
  std::optional<double> memory_bytes = std::nullopt;
  double transcendentals = 0;
  /// Bytes that one device sends to others.
  double link_bytes = 0;
  friend bool operator==(const CustomCallCost&, const CustomCallCost&) = default;
};

/// Where the cost of a custom call comes from.
enum class CustomCallSource {
  kUnknown,  ///< only its operands and results are known
  kCounted,  ///< counted from its shapes: matrix products and convolutions of GPU libraries
  kStated,   ///< stated in the module, as Pallas kernels with a cost estimate do
  kGiven,    ///< given by the caller of explain()
};

template <>
struct EnumNames<CustomCallSource> {
  using enum CustomCallSource;
  static constexpr EnumName<CustomCallSource> kNames[] = {
      {kUnknown, "unknown"}, {kCounted, "counted"}, {kStated, "stated"}, {kGiven, "given"}};
};

/// `unknown`, `counted`, `stated`, `given`
std::string_view to_string(CustomCallSource source);

/// A custom call of a module. Refers to the module.
struct CustomCall {
  const HloInstruction* instruction = nullptr;
  /// What the program calls it: the kernel's name for a Pallas kernel, otherwise the target.
  std::string name;
  /// Executions in one run of the program.
  std::int64_t executions = 1;
  /// Bytes of operands and results, in any memory.
  std::int64_t operand_bytes = 0, result_bytes = 0;
  CustomCallSource source = CustomCallSource::kUnknown;
  /// None if unknown or counted.
  std::optional<CustomCallCost> cost = std::nullopt;
  /// True if its attributes or `cost` specify that it sends data to other devices.
  bool communicates = false;
};

/// The custom calls that a module runs, in module order. Excludes those that take no time: marks,
/// allocations, and the ends of asynchronous collectives that TPU compilers write as custom calls.
/// The cost estimates of Pallas kernels are read from the backend config of `tpu_custom_call`
/// (`flops`, `transcendentals`, `bytes_accessed`, `remote_bytes_transferred`;
/// jax/_src/tpu_custom_call.py).
std::vector<CustomCall> custom_calls_of(const Executions& executions);

}  // namespace meshard
