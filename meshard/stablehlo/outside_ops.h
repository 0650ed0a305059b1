// The ops of a module that need something outside of the module: functions and hosts that it calls.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: an op of a module that communicates with its host, or calls a function by its name.
struct OutsideOp {
  /// `custom_call`, `infeed`, `outfeed`, `send`, `recv`.
  std::string name;
  /// The function that a custom call names.
  std::string target = {};
  /// The source line of the op, `model.py:12`; empty if the module does not have it.
  std::string place = {};
  friend bool operator==(const OutsideOp&, const OutsideOp&) = default;
};

/// These ops of a module in text or bytecode, in its order; equal ones once.
/// @error data loss: the bytes are damaged
Result<std::vector<OutsideOp>> outside_ops(std::string_view module);

}  // namespace meshard::stablehlo
