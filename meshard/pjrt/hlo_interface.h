// The boundary of a compiled program: its arguments and results as one device has them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/hlo_shape.h"
#include "meshard/pjrt/hlo_sharding.h"

namespace meshard::pjrt {

/// What the partitioner decided about the inputs and outputs of a module.
struct HloInterface {
  /// The parameters and result of one device: shard shapes.
  std::vector<HloShape> parameters;
  HloShape result;
  /// The compiler's choice; empty if the module does not record it.
  std::optional<OpSharding> output_sharding;
  std::vector<OpSharding> parameter_shardings;

  /// Reads the bytes of Executable::optimized_program() or of interface_bytes(), and skips
  /// everything else in them.
  /// @error data loss if they are damaged
  static Result<HloInterface> from_bytes(std::string_view module_with_config);
};

/// The parts of a module that HloInterface::from_bytes() reads, and which arguments are donated, in
/// the same form: a few bytes for each argument and result, whatever the size of the program. If
/// the bytes are damaged, the parts before that place.
std::string interface_bytes(std::string_view module_with_config);

}  // namespace meshard::pjrt
