// Which arguments of a compiled program its results replace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/collectives/value_flow.h"
#include "meshard/hlo/executions.h"

namespace meshard {

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

  /// The arguments that these results replace, of those that the model reads: those with the same
  /// shard and the longest common end of their keys, else those whose memory the result reuses.
  std::vector<std::int64_t> replaced_by(const std::vector<std::int64_t>& results) const;

  /// Those of the arguments that the op with this name uses, in either pass of the model.
  std::vector<std::int64_t> used_by(const std::string& op_name,
                                    const std::vector<std::int64_t>& arguments) const;

  /// Those of the arguments that the model reads and the program replaces whose gradient the op
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
  // By argument: the scopes of its uses in the model, those by products first.
  std::vector<std::vector<std::string>> scopes_;
  std::vector<std::int64_t> replaced_;  // by result; -1: none, or not certain
};

}  // namespace meshard
