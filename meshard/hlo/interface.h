// The boundary of a compiled program: its arguments and results as one device has them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/shape.h"
#include "meshard/hlo/sharding.h"

namespace meshard {

/// What the partitioner decided about the inputs and outputs of a module.
struct HloInterface {
  /// The parameters and result of one device: shard shapes.
  std::vector<HloShape> parameters;
  HloShape result;
  /// The compiler's choice; empty if the module does not record it.
  std::optional<HloSharding> output_sharding;
  std::vector<HloSharding> parameter_shardings;

  /// Reads the bytes of Executable::optimized_program() or of pjrt::interface_bytes(), and skips
  /// everything else in them.
  /// @error data loss if they are damaged
  static Result<HloInterface> from_bytes(std::string_view module_with_config);
};

}  // namespace meshard
