// Rewrites unsupported custom calls into forms that a compiler accepts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: module text without such calls.
struct BatchedCalls {
  std::string text;
  /// The targets of the calls that were replaced, in the order of the text.
  std::vector<std::string> targets = {};
};

/// Replaces the custom calls with a frontend attribute `num_batch_dims`, such as JAX's calls of
/// LAPACK. JAX tells its compiler that they can be split by their first dimensions
/// (jax/_src/ffi.py, register_ffi_target_as_batch_partitionable); a plugin does not have this list,
/// and would gather their operands. A substitute has the operands and results of the call, is split
/// by the same dimensions, and gathers what is split by others. It computes something else. Lines
/// keep their numbers.
/// @error data loss: the text cannot be parsed
Result<BatchedCalls> replace_batched_calls(std::string_view text);

/// The text with the custom calls of `target` as typed calls (api_version 4) without a
/// configuration. A compiler of XLA accepts typed calls that it has a placeholder for; of those of
/// the older interfaces it needs the function itself. The text stays as it is if it has no such
/// call.
/// @error data loss: the text cannot be parsed
Result<std::string> with_typed_calls(std::string_view text, std::string_view target);

/// The bytecode with the custom calls of StableHLO 1.18 as versions from 1.0 on read them, which is
/// what plugins of that age need. A call with features that only 1.18 has stays unchanged, and so
/// does a module as text.
/// @error data loss: the bytecode is damaged
Result<std::string> with_older_calls(std::string bytecode);

}  // namespace meshard::stablehlo
