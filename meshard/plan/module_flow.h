// Which collectives a module's ops will need for given shardings, judged without a compiler.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/plan/candidate.h"

namespace meshard {

/// A value: the ops of a module's text, as far as they matter to shardings. Immutable; copies share
/// their state.
///
/// Shardings are followed from the arguments forward, op by op. Products, reductions, transposes,
/// reshapes, broadcasts, element-wise ops, slices, loops, calls and sharding constraints are known;
/// the result of any other op is taken as not split, at no cost. A real partitioner also looks
/// backward and chooses more cleverly: this is for putting candidates in an order.
class ModuleFlow {
 public:
  /// Reads StableHLO text. Lines that are not understood count as unknown ops.
  /// @error data loss: no main function, or strings and brackets that do not end
  static Result<ModuleFlow> parse(std::string_view text);

  /// Bytes that one device gets or gives (the larger), a loop's as often as its condition's
  /// constant says: of a product or sum over split dimensions the result's shard; where operands
  /// disagree the smaller one's part after it was gathered.
  /// @param arguments, results specs of main's; none: not split, or whatever comes
  double communication(const std::vector<MeshAxis>& axes,
                       const std::vector<std::optional<PartitionSpec>>& arguments,
                       const std::vector<std::optional<PartitionSpec>>& results = {}) const;

  /// Ops that were understood, of all. For tests and for a word of caution.
  std::size_t known_ops() const;
  std::size_t all_ops() const;

  struct State;

 private:
  explicit ModuleFlow(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace meshard
