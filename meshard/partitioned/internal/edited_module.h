// A HLO module that is being edited as wire bytes: what is not edited is copied as it is.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/module.h"

namespace meshard::internal {

/// An instruction: the fields that editing changes, and the bytes of all others.
struct EditedInstruction {
  std::int64_t id = 0;
  std::string name;
  std::string opcode;
  /// Bytes of a ShapeProto.
  std::string shape;
  std::vector<std::int64_t> operands;
  std::vector<std::int64_t> control_predecessors;
  std::vector<std::int64_t> called;
  /// The other fields. An instruction's sharding is not among them: the partitioner has used it.
  std::string rest;
  /// The instruction as it was read; null for a new one.
  const HloInstruction* original = nullptr;

  std::string bytes() const;
  /// Removes a field of `rest`.
  void clear(int field);
};

/// A computation: its instructions in an order in which operands precede their users.
struct EditedComputation {
  std::int64_t id = 0;
  std::string name;
  std::int64_t root = 0;
  std::vector<EditedInstruction> instructions;
  /// Bytes of a ProgramShapeProto.
  std::string program_shape;
  std::string rest;

  std::string bytes() const;
  /// The instruction with this id, or null.
  const EditedInstruction* find(std::int64_t instruction) const;
};

/// Move-only: a module. It holds the bytes of a HloModuleProto and what they say.
struct EditedModule {
  /// @error data loss if the bytes are damaged, refer to instructions or computations that do not
  /// precede, or use an id twice
  static Result<EditedModule> from_bytes(std::string_view bytes);
  EditedModule() = default;
  EditedModule(EditedModule&&) = default;
  EditedModule& operator=(EditedModule&&) = default;

  /// The bytes of the module with the computations that the entry computation needs.
  std::string bytes() const;
  EditedComputation* find(std::int64_t computation);
  const EditedComputation* find(std::int64_t computation) const;

  HloModule original;
  std::vector<EditedComputation> computations;
  std::int64_t entry = 0;
  std::string host_program_shape;
  std::string input_output_alias;
  /// The other fields, without those that only the partitioned program of a whole mesh has.
  std::string rest;
};

// Shapes, as the bytes of a ShapeProto.

/// `s32[]`, the type of the value that orders collectives.
std::string chain_shape();
bool is_tuple_shape(std::string_view shape);
/// The parts of a tuple's shape.
std::vector<std::string> tuple_parts(std::string_view shape);
std::string tuple_shape(const std::vector<std::string>& parts);
/// The shape with the chain: `(A, B)` becomes `(A, B, s32[])`, an array A becomes `(A, s32[])`.
std::string with_chain(std::string_view shape);
/// The shape with row-major layouts.
std::string row_major(std::string_view shape);

/// The bytes of a message without the given field.
std::string without_field(std::string_view message, int field);

}  // namespace meshard::internal
