// Predicts a program's communication before it is compiled.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/argument_list.h"

namespace meshard {

/// Value type: one collective: kAllGather, kAllToAll or kCollectivePermute.
struct ReshardStep {
  CollectiveKind kind = CollectiveKind::kAllGather;
  /// The axes that are gathered, or that move to another dimension. Empty for a permutation.
  AxisList axes = {};
  /// The bytes that one device sends or receives, whichever are more.
  std::int64_t bytes = 0;

  friend bool operator==(const ReshardStep&, const ReshardStep&) = default;
};

/// A predicted collective, for LinkModel. Without axes it is over all devices of the mesh.
Collective predicted_collective(CollectiveKind kind, const AxisList& axes, std::int64_t bytes,
                                std::int64_t devices);

/// Value type: the steps of one reshard, in order. No steps: each device slices its part from its
/// own data.
struct ReshardPlan {
  std::vector<ReshardStep> steps;
  /// True if every device receives the whole value and slices its part from it. Not set if one of
  /// the shardings is replicated.
  bool full_rematerialization = false;

  bool is_free() const { return steps.empty(); }
  /// Sum over the steps.
  std::int64_t bytes() const;
};

/// Models how XLA's partitioner changes a sharding to another. The plan depends on the number of
/// tiles of each dimension before and after (openxla/xla, xla/service/spmd/spmd_partitioner.cc,
/// PartitionedHlo::ReshardNoCache):
///
/// - each dimension has as many or more tiles after: devices slice; then a permutation, if the
///   tiles are not in place;
/// - as many or fewer: that permutation first, then an all-gather for each dimension, last first;
/// - the same total, in different dimensions: an all-to-all, then a permutation if needed;
/// - else, if the target uses all devices, slicing whole dimensions may give the previous case; or
///   an all-gather of one dimension may;
/// - else the whole value is gathered and sliced.
///
/// The plans were compared with the compiler's output for all pairs of shardings of small meshes.
///
/// @pre both are shardings of values of this type, over meshes of the same devices; otherwise the
/// plan gathers everything.
ReshardPlan plan_reshard(const TensorType& type, const Sharding& from, const Sharding& to);

/// Value type: one predicted collective, or full rematerialization of a value on every device.
struct PredictedMove {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The axes that are summed over, gathered or exchanged. Empty for a permutation.
  AxisList axes = {};
  /// Like Collective::bytes(): the bytes that one device sends or receives in one execution,
  /// whichever are more.
  std::int64_t bytes = 0;
  /// How often the move runs in one run of the program: the product of the trip counts of the loops
  /// around it.
  std::int64_t executions = 1;
  /// False if a trip count is unknown; such a loop counts as one iteration.
  bool executions_known = true;
  /// True in a branch, which may not be taken.
  bool conditional = false;
  /// True if another branch of the same op moves more. Only the branch with the most bytes counts.
  bool in_smaller_branch = false;
  /// True for part of a reshard in which the partitioner rematerializes the value on every device.
  bool full_rematerialization = false;
  /// The type of the moved value; for an all-reduce, of the op's result.
  TensorType type;
  /// The shardings before and after; for an all-reduce, both are the result's.
  std::optional<Sharding> from = std::nullopt, to = std::nullopt;
  /// The op that needs the move.
  OriginPlace origin = {};
  /// Whether a sharding mark requested it, or the partitioner inserts it for another op.
  CollectiveCause who = CollectiveCause::kInserted;
  /// The reason in one sentence.
  std::string cause = {};
  /// How to avoid the move; empty if there is nothing to say.
  std::string suggestion = {};

  MESHARD_WRITTEN_FIELDS(kind, axes, bytes, executions, executions_known, conditional,
                         in_smaller_branch, total_bytes(), full_rematerialization, type, from, to,
                         origin, who, cause, suggestion)
  /// `bytes` over all executions in one run of the program; 0 in a branch that does not count.
  std::int64_t total_bytes() const {
    return in_smaller_branch ? 0 : saturating_multiply(bytes, executions);
  }
  /// `all-gather on axis "model", 64 KiB x 12, of f32[32,64] P(none, "model") to P(none, none),
  /// from demo.cc:42 (dot_general): ...`
  std::string to_string() const;
};

/// Value type: the result of predict(), in program order.
struct Prediction {
  std::vector<PredictedMove> moves;
  /// The predicted shardings of the program's results; none without a mesh.
  std::vector<std::optional<Sharding>> results;
  /// What the prediction does not cover.
  std::vector<std::string> notes;

  MESHARD_WRITTEN_FIELDS(moves, results, notes, bytes())
  /// The moves of one kind.
  std::vector<PredictedMove> of(CollectiveKind kind) const;
  /// The sum of total_bytes().
  std::int64_t bytes() const;
  /// One line for each move, with causes and suggestions.
  std::string to_string() const;
};

/// Predicts the collectives that the partitioner will insert into a program, without compiling.
/// Reads the module that would be compiled (ModuleProgram): shardings spread by the ops'
/// sharding rules, and into the bodies of loops, branches and checkpoints; plan_reshard() gives the
/// moves where an op needs an operand sharded differently. The collectives of manual functions are
/// listed too.
///
/// What is in a loop is listed once, with the number of its executions.
///
/// The compiler may do better (it merges, hoists and drops collectives) and, where operands
/// disagree, may choose differently. Ops that exchange the borders of shards along a sharded
/// dimension (slice, pad, concat, flip) are reported as one permutation, whose bytes are a guess.
/// @error errors of lower()
Prediction predict(const Graph& graph);

namespace internal {
/// The function's graph for parameters with these arguments' types; nothing is computed.
Graph graph_for_prediction(
    std::span<const Tensor> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& f);
}  // namespace internal

/// The same for a function, with arguments of these types and shardings. Nothing is compiled, run
/// or computed; f is traced as by jit, so equal layers become one loop.
///
/// @code
/// Mesh mesh({{"model", 4}});
/// Tensor x = mark_sharding(ones({16, 32}), mesh, P(none, "model"));
/// Tensor w = mark_sharding(ones({32, 8}), mesh, P("model", none));
/// Prediction p = predict([](Tensor x, Tensor w) { return matmul(x, w); }, x, w);
/// std::cout << to_string(p.moves[0].kind) << " of " << p.moves[0].bytes << " bytes\n";
/// @endcode
/// prints `all-reduce of 512 bytes`.
///
/// @error errors of tracing f, and of lower()
template <class F, class... Arguments>
requires(!std::same_as<F, Graph>) Prediction predict(const F& f, const Arguments&... arguments) {
  return predict(internal::graph_for_prediction(
      internal::tensors_of(arguments...), [&](std::span<const Tensor> parameters) {
        return internal::call_with(parameters, f, arguments...);
      }));
}

}  // namespace meshard
