// Where values of a compiled module come from and go to: through its instructions, and to its
// arguments and results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/collectives/origin.h"
#include "meshard/hlo/executions.h"

namespace meshard {

/// An instruction and the computation that contains it.
struct LocatedInstruction {
  const InstructionIndex* index = nullptr;
  const HloInstruction* instruction = nullptr;
  friend bool operator==(const LocatedInstruction&, const LocatedInstruction&) = default;
};

/// The receive of a send to another slice, or the send of a receive (TPU); null if there is none.
const HloInstruction* transfer_partner(const InstructionIndex& index, const HloInstruction& one);

/// Where a value comes from, if no operation computes it: only operations that move, convert, cut
/// or join data are followed back, and gathers and permutations. Constants are from nowhere.
struct ValueSources {
  /// The program's parameters that the value is taken from, sorted.
  std::vector<std::int64_t> parameters;
  /// The collectives that the value passed, nearest first.
  std::vector<LocatedInstruction> collectives;
  /// True if some part of the value is the result of an operation.
  bool computed = false;
};

/// Where a value goes.
struct ValueUses {
  /// The program's results that the value reaches, sorted.
  std::vector<std::int64_t> results;
  /// The operations that use the value and were not followed.
  std::vector<LocatedInstruction> consumers;
  /// The collectives that the value reached, nearest first.
  std::vector<LocatedInstruction> collectives;
};

/// Follows values of one module.
class ValueFlow {
 public:
  /// @pre the executions outlive this object
  explicit ValueFlow(const Executions& executions) : executions_(executions) {}

  /// The sources of an instruction's operand `number`.
  /// @param through_collectives false: the search ends at collectives. True: it goes on through
  /// gathers and permutations; reductions compute a value.
  /// @param through_arithmetic true: operations that act on each element separately are followed
  /// back too. Values that other operations compute then have parts of `parameters` as well.
  ValueSources sources(const LocatedInstruction& at, std::size_t number,
                       bool through_collectives = true, bool through_arithmetic = false) const;

  /// The uses of an instruction's result.
  /// @param element of a tuple; -1: all of the result
  /// @param through_arithmetic true: operations that act on each element separately are followed
  /// too, so that a gradient is followed through the optimizer
  /// @param through_collectives false: the search ends at collectives
  ValueUses uses(const LocatedInstruction& at, std::int64_t element, bool through_arithmetic,
                 bool through_collectives = true) const;

 private:
  const Executions& executions_;
};

/// True for a dot and a convolution, by which a model uses most weights.
bool is_product(const HloInstruction& one);

struct BoundaryNames;

/// The arguments and results of a module.
class BoundaryMatch {
 public:
  BoundaryMatch(const Executions& executions, const BoundaryNames& names,
                const ProgramPhases& phases);

  /// `params['w1']`; `argument 3` for an argument without a name.
  std::string argument_name(std::int64_t argument) const;
  /// `result['loss']`; `result 3` for a result without a name.
  std::string result_name(std::int64_t result) const;

  /// The arguments, among those that the model reads, that these results replace: by the same shard
  /// and the longest common end of the keys, otherwise by the reused memory.
  std::vector<std::int64_t> replaced_by(const std::vector<std::int64_t>& results) const;

  /// The arguments among them that the op with this name uses, in either pass of the model.
  std::vector<std::int64_t> used_by(const std::string& op_name,
                                    const std::vector<std::int64_t>& arguments) const;

  /// The arguments that the model reads and the program replaces, and whose gradient the op
  /// with this name may make: the op uses them, and a value of this shape is a shard, or several.
  std::vector<std::int64_t> gradient_of(const std::string& op_name, const HloShape& shape) const;

  /// The scope in which the model uses these arguments, by their names: of several arguments, the
  /// common part; of one that is used in several, the scope `own` if it is one of them, or the
  /// first that is inside of it, or the first. None if no use of them has a scope.
  std::optional<std::string> layer_of(const std::vector<std::string>& names,
                                      const std::string& own) const;

  /// True if some result replaces the argument, and the model reads it: a weight.
  bool is_updated(std::int64_t argument) const;

  /// True if the argument's shard has `count` elements, or that many for each index of its first
  /// dimension, as in the parameters of stacked layers.
  bool has_elements(std::int64_t argument, std::int64_t count) const;

 private:
  bool is_read_by_model(std::int64_t argument) const;
  std::int64_t replaced(std::size_t result) const;

  const Executions& executions_;
  std::vector<std::string> argument_names_, result_names_;
  std::vector<bool> read_by_model_;
  std::vector<std::vector<std::string>> ops_;  // by argument: the ops that use it, op_in_layer()
  // For each argument, the scopes of its uses in the model; uses by products come first.
  std::vector<std::vector<std::string>> scopes_;
  std::vector<std::int64_t> replaced_;  // by result; -1: none, or not certain
};

}  // namespace meshard
