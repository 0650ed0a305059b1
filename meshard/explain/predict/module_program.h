// The text of a module as prediction sees it.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/predict/ruled_program.h"
#include "meshard/sharding/partition_spec.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// Value type: the main function of a module: called functions, loops and branches are part of it.
/// Immutable; copies share their state.
///
/// A loop runs as often as the constant in its condition says, or once; each branch is counted
/// once. The result of an op without a sharding rule is replicated, and its operands do not move.
class ModuleProgram {
 public:
  /// @error data loss: no main function
  static Result<ModuleProgram> of(const stablehlo::Module& module);

  const RuledProgram& rules() const { return state_->rules; }

  /// The shardings after propagation.
  /// @param arguments, results those of main, by position; missing ones are open
  std::vector<PartialSharding> shardings(
      const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
      const std::vector<std::optional<PartitionSpec>>& results) const;

  /// Predicted bytes that one device sends or receives (the larger), over all executions.
  double communication(const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
                       const std::vector<std::optional<PartitionSpec>>& results = {}) const;

  /// The number of ops with operands, as often as they are called, and of those that have a rule or
  /// are followed. For tests and warnings.
  std::size_t all_ops() const { return state_->all_ops; }
  std::size_t known_ops() const { return state_->known_ops; }

  struct State {
    RuledProgram rules;
    /// Numbers of values; none for one that is not a tensor of known shape.
    std::vector<std::optional<std::size_t>> arguments, results;
    /// Values that are replicated, and those that a sharding constraint gives, with its text.
    std::vector<std::size_t> replicated;
    std::vector<std::pair<std::size_t, std::string>> constraints;
    std::size_t all_ops = 0, known_ops = 0;
  };

 private:
  explicit ModuleProgram(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace meshard
