// A HLO module that is being edited as wire bytes: unedited parts are copied unchanged.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
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

/// Move-only: a module. It holds the bytes of a HloModuleProto and the parsed fields.
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

/// Ids that are not used yet.
struct IdSource {
  explicit IdSource(const EditedModule& module);
  std::int64_t next = 0;  // of an instruction
  std::int64_t next_computation = 0;
};

/// Whether the upper half of each instruction's id is the id of the computation, as newer compilers
/// number them. Otherwise ids are the module's.
bool is_numbered_by_computation(const EditedComputation& computation);

/// Builds the new instructions of a computation from its old ones. An id of an old instruction
/// keeps denoting a value of the same type; or, if only get-tuple-elements use it, a tuple that
/// begins with the same parts.
class ComputationWriter {
 public:
  explicit ComputationWriter(EditedComputation& computation, IdSource& ids);

  /// An id that no instruction of the module has.
  std::int64_t fresh() { return numbered_by_computation_ ? next_id_++ : ids_.next++; }
  std::int64_t add(EditedInstruction instruction);
  /// `get-tuple-element` number `index` of `tuple`, with this id or a new one.
  std::int64_t add_element(std::int64_t tuple, std::size_t index, const std::string& shape,
                           std::optional<std::int64_t> id = {});
  std::int64_t add_tuple(const std::vector<std::int64_t>& parts,
                         std::optional<std::int64_t> id = {});
  /// The constant s32[] 0.
  std::int64_t add_zero();
  /// Parameter `number`, of type s32[].
  std::int64_t add_chain_parameter(std::size_t number);

  /// The parts of an old value: the elements of a tuple, otherwise the value itself.
  std::vector<std::int64_t> parts_of(std::int64_t value);
  /// Gives an old value, of type `shape`, the parts from `first` on of a new tuple.
  void deliver(std::int64_t value, const std::string& shape, std::int64_t tuple, std::size_t first);
  /// Whether anything but get-tuple-elements uses an old value, or the caller does.
  bool is_used_whole(std::int64_t value) const { return whole_.count(value) > 0; }
  const std::string& shape_of(std::int64_t value) const { return shapes_.at(value); }

  /// Gives the computation its new instructions.
  void finish();

 private:
  EditedComputation& computation_;
  IdSource& ids_;
  bool numbered_by_computation_;
  std::int64_t next_id_ = 0;
  std::vector<EditedInstruction> instructions_;
  std::unordered_map<std::int64_t, std::string> shapes_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> tuples_;  // operands of `tuple`
  std::unordered_set<std::int64_t> whole_;
};

}  // namespace meshard::internal
