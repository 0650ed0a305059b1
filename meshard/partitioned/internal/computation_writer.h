// Writes the instructions of one computation.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "meshard/partitioned/internal/edited_module.h"

namespace meshard::internal {

/// Ids that are not used yet.
struct IdSource {
  explicit IdSource(const EditedModule& module);
  std::int64_t next = 0;  // of an instruction
  std::int64_t next_computation = 0;
};

/// Whether the upper half of each instruction's id is the id of the computation, as newer compilers
/// number them. Otherwise ids are those of the module.
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

  /// The parts of an old value: those of a tuple, else the value itself.
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
