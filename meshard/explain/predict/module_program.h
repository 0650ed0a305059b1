// The text of a module as prediction sees it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/cost/link_use.h"
#include "meshard/sharding/partition_spec.h"
#include "meshard/sharding/propagate.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// Value type: a collective that the program itself contains, in a manual computation.
struct StatedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The logical devices of each group; of a permutation, its pairs. Empty: a single group of all.
  std::vector<std::vector<std::int64_t>> groups = {};
  /// The axes along which the groups are, if the program names them instead of the devices.
  std::optional<AxisList> axes = std::nullopt;
};

/// Value type: what a prediction says about an op.
struct RuledOpFacts {
  OriginPlace origin = {};
  /// The cause of the op's moves: `the mark`, `the manual function`; empty if nothing does.
  std::string_view asked_by = {};
  /// The index of the region that the op is in.
  std::size_t region = 0;
  /// True if every element keeps its indices: where shards of operand and result are of equal size,
  /// none moves.
  bool keeps_indices = false;
  /// True for a matrix product or convolution, whose operands are the values and the weights.
  bool is_product = false;
  /// Set for a collective of the program: it moves its operands.
  std::optional<StatedCollective> stated = std::nullopt;
};

/// Value type: ops that run equally often: the ops of the program, of a loop, or of a branch.
struct RuledRegion {
  /// The enclosing region; for the program itself, 0.
  std::size_t parent = 0;
  /// How often the region runs in one run of the program: the product of the trip counts.
  std::int64_t executions = 1;
  /// False if a trip count is unknown; such a loop counts as one iteration.
  bool executions_known = true;
  /// True if the region is a branch, or inside of one.
  bool conditional = false;
  /// For a branch: the region of the first branch of the same op. Only one of them runs.
  std::optional<std::size_t> first_branch = std::nullopt;
};

/// Value type: the ops of a program that have sharding rules, in program order, and its values.
struct RuledProgram {
  std::vector<RuledOp> ops;
  /// By op.
  std::vector<RuledOpFacts> facts;
  /// By value.
  std::vector<TensorType> types;
  /// The place where each value was made; empty if unknown.
  std::vector<std::string> made_at;
  /// Region 0 is the program. A region comes after its parent.
  std::vector<RuledRegion> regions = {{}};

  std::size_t add_value(TensorType type, std::string made = {}) {
    types.push_back(std::move(type));
    made_at.push_back(std::move(made));
    return types.size() - 1;
  }
  /// A loop in region `parent`. @param trips none: unknown
  std::size_t add_loop(std::size_t parent, std::optional<std::int64_t> trips);
  /// A branch in region `parent`. @param first the first branch of the same op; none: this one
  std::size_t add_branch(std::size_t parent, std::optional<std::size_t> first);
  /// True if `inner` is `outer`, or inside of it.
  bool is_inside(std::size_t inner, std::size_t outer) const;
};

/// The regions that count if of all branches of an op the one with the most bytes is taken; of
/// equal ones, the first.
/// @param bytes of each region, over all executions, without the regions inside of it
std::vector<bool> regions_with_most(const RuledProgram& program, const std::vector<double>& bytes);

/// Value type: where an op of a module comes from.
struct ModulePlace {
  OriginPlace origin = {};
  /// True if it is a sharding mark.
  bool is_mark = false;
};
/// The place that the name in an op's location refers to; none if it refers to none.
using FindPlace = std::function<std::optional<ModulePlace>(std::string_view name)>;

/// Value type: a module's main function, read for prediction.
struct WalkedModule {
  RuledProgram rules;
  /// Numbers of values; none for one that is not a tensor of known shape.
  std::vector<std::optional<std::size_t>> arguments, results;
  /// Values that are replicated, and values with a sharding in the text, with that text.
  std::vector<std::size_t> replicated;
  std::vector<std::pair<std::size_t, std::string>> constraints;
  /// Values inside manual computations, with the index of the manual axes.
  std::vector<std::pair<std::size_t, std::size_t>> local;
  std::vector<std::vector<std::string>> manual_axes;
  /// Names of meshes that have other axes than the first one.
  std::vector<std::string> other_meshes;
  /// The number of ops with operands, as often as they are called, and of those that have a rule or
  /// are followed.
  std::size_t all_ops = 0, known_ops = 0;
};

/// Writes out main: called functions, loops, branches and manual computations are followed.
WalkedModule walk(const stablehlo::Module& module, const stablehlo::ModuleFunction& main,
                  const FindPlace& find_place = {});

/// Value type: the predicted time of one run on one device, without overlap.
struct PredictedTime {
  /// Matrix products and convolutions, at the published rate of their type.
  double compute_seconds = 0;
  /// Arguments are read and results written once, and products read their operands and write their
  /// results. All other ops count as fused with these.
  double memory_seconds = 0;
  /// The moves, by LinkModel.
  double link_seconds = 0;
  /// Bytes that the device sends or receives (the larger), over all executions.
  double communication = 0;

  double seconds() const { return compute_seconds + memory_seconds + link_seconds; }
  friend bool operator==(const PredictedTime&, const PredictedTime&) = default;
};

/// Value type: the main function of a module: called functions, loops, branches and manual
/// computations are part of it. Immutable; copies share their state.
///
/// What is in a loop counts as often as the loop runs, or once if that is unknown. Of all branches
/// of an op, the one that moves the most counts. The result of an op without a sharding rule is
/// replicated; a custom call takes whole operands, and those of any other op do not move.
/// Collectives of manual computations are moves.
class ModuleProgram {
 public:
  /// @param find_place what the names in the module's locations stand for. Default: nothing
  /// @error data loss: no main function
  static Result<ModuleProgram> of(const stablehlo::Module& module,
                                  const FindPlace& find_place = {});

  const RuledProgram& rules() const { return state_->rules; }
  /// The numbers of the values of main's arguments and results; none for one that is not a tensor
  /// of known shape.
  const std::vector<std::optional<std::size_t>>& arguments() const { return state_->arguments; }
  const std::vector<std::optional<std::size_t>>& results() const { return state_->results; }

  /// The shardings that the text gives to values inside of main, by value: constraints, and the
  /// borders of manual computations. All other values are open. What the text shards over another
  /// mesh than its first one is not known.
  std::vector<PartialSharding> given_shardings(const Mesh& mesh) const;

  /// The shardings after propagation.
  /// @param arguments, results of main, by position; missing ones are open
  std::vector<PartialSharding> shardings(
      const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
      const std::vector<std::optional<PartitionSpec>>& results) const;

  /// Predicted bytes that one device sends or receives (the larger), over all executions.
  double communication(const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
                       const std::vector<std::optional<PartitionSpec>>& results = {}) const;

  /// The predicted time. Where the hardware's figures are unknown, only `communication` is set.
  /// @param mesh with the device ids of the target that `links` describes
  /// @param arguments, results of main, by position; missing ones are open
  PredictedTime time(const Mesh& mesh, const LinkModel& links,
                     const std::vector<std::optional<PartitionSpec>>& arguments,
                     const std::vector<std::optional<PartitionSpec>>& results = {}) const;

  /// The number of ops with operands, as often as they are called, and of those that have a rule or
  /// are followed. For tests and warnings.
  std::size_t all_ops() const { return state_->all_ops; }
  std::size_t known_ops() const { return state_->known_ops; }

 private:
  explicit ModuleProgram(std::shared_ptr<const WalkedModule> state) : state_(std::move(state)) {}
  std::shared_ptr<const WalkedModule> state_;
};

}  // namespace meshard
