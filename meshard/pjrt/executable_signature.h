// The parameter and result types of a compiled program.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/array_type.h"

namespace meshard::pjrt {

/// A value: the shard types of a compiled program, which are the same on every device.
///
/// The C API reports only the results; the arguments are read from the compiled module. A cache
/// stores the signature with the serialized executable, so that loading it does not need the
/// module.
struct ExecutableSignature {
  std::vector<ArrayType> parameters;
  std::vector<ArrayType> results;
  /// Indices of the parameters whose buffers a launch consumes, ascending.
  std::vector<int> donated;
  bool has_collectives = false;
  /// Whether an instruction reads the number of the device among those of the program.
  bool reads_partition_id = false;

  /// Reads the signature from the bytes of a HloModuleProtoWithConfig, skipping everything else.
  /// @error data loss if the bytes are damaged
  static Result<ExecutableSignature> from_module(std::string_view module_with_config);

  /// `(f32[2,3] donated, s32[]) -> (f32[2,3]) with collectives reading the partition id`
  std::string to_string() const;
  /// Parses the output of to_string().
  static Result<ExecutableSignature> parse(std::string_view text);
  friend bool operator==(const ExecutableSignature&, const ExecutableSignature&) = default;
};

/// The parts of a module from which the layers above read its arguments, results and their
/// shardings (hlo/interface.h), and which arguments are donated, in the same form: a few bytes for
/// each argument and result, whatever the size of the program. If the bytes are damaged, the parts
/// before that place.
std::string interface_bytes(std::string_view module_with_config);

/// The element type of XLA's PrimitiveType `number`; kInvalid if buffers cannot have it.
ElementType element_type_of_primitive(int number);

/// Whether an HLO opcode moves data between devices: `all-reduce`, `all-gather-start`, `send`, ...
bool is_collective_opcode(std::string_view opcode);

/// Whether an HLO opcode gives the number of the device among those of the program: `partition-id`,
/// `replica-id`.
bool is_partition_id_opcode(std::string_view opcode);

}  // namespace meshard::pjrt
