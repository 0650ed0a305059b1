// What a compiled program takes and gives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"

namespace meshard::pjrt {

/// A value: the shard types of a compiled program, which are the same on every device.
///
/// The C API tells only the results; the arguments stand in the compiled module. A cache keeps the
/// signature beside the serialized executable, so that loading it needs no module.
struct ExecutableSignature {
  std::vector<ArrayType> parameters;
  std::vector<ArrayType> results;
  /// Numbers of the parameters whose buffers a launch consumes, ascending.
  std::vector<int> donated;
  bool has_collectives = false;

  /// Reads it from the bytes of a HloModuleProtoWithConfig, skipping all the rest.
  /// @error data loss if the bytes are damaged
  static Result<ExecutableSignature> from_module(std::string_view module_with_config);

  /// `(f32[2,3] donated, s32[]) -> (f32[2,3]) with collectives`
  std::string to_string() const;
  /// Reads what to_string() printed.
  static Result<ExecutableSignature> parse(std::string_view text);
  friend bool operator==(const ExecutableSignature&, const ExecutableSignature&) = default;
};

/// The element type of XLA's PrimitiveType `number`; kInvalid if buffers have no such type.
ElementType element_type_of_primitive(int number);

/// Whether an HLO opcode moves data between devices: `all-reduce`, `all-gather-start`, `send`, ...
bool is_collective_opcode(std::string_view opcode);

}  // namespace meshard::pjrt
