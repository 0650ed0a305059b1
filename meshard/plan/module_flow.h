// Estimates a module's communication for given shardings, without a compiler.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/plan/candidate.h"

namespace meshard {

/// Value type: the ops of a module's text that matter for shardings. Immutable; copies share their
/// state.
///
/// Shardings are propagated forward from the arguments, op by op. Products, reductions, transposes,
/// reshapes, broadcasts, element-wise ops, slices, loops, calls and sharding constraints are
/// supported; the result of any other op is taken as replicated, at no cost. A real partitioner
/// also propagates backward and makes better choices: use this only to order candidates.
class ModuleFlow {
 public:
  /// Parses StableHLO text. Lines that are not understood count as unknown ops.
  /// @error data loss: no main function, or unterminated strings or brackets
  static Result<ModuleFlow> parse(std::string_view text);

  /// Estimated bytes that one device sends or receives (the larger), including loop iterations. A
  /// loop's trip count is the constant in its condition. A product or sum over sharded dimensions
  /// counts the result's shard; where operands disagree, the smaller one's shard after the gather
  /// counts.
  /// @param arguments, results specs for main; none: replicated arguments, results as they come
  double communication(const std::vector<MeshAxis>& axes,
                       const std::vector<std::optional<PartitionSpec>>& arguments,
                       const std::vector<std::optional<PartitionSpec>>& results = {}) const;

  /// Number of ops that were understood, and of all ops. For tests and warnings.
  std::size_t known_ops() const;
  std::size_t all_ops() const;

  struct State;

 private:
  explicit ModuleFlow(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace meshard
