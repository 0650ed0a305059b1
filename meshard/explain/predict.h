// What a program will have to move between devices, before anything is compiled.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/explain/reshard_plan.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/trace/argument_list.h"

namespace meshard {

/// A value: one collective that a program is predicted to need, or one whole value that is made on
/// every device and cut again.
struct PredictedMove {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The axes that are summed over, gathered or exchanged. Empty for a permutation.
  AxisList axes = {};
  /// As Collective::bytes(): the larger of what one device gives and gets.
  std::int64_t bytes = 0;
  /// Part of a reshard for which the partitioner makes the whole value on every device.
  bool full_rematerialization = false;
  /// The value that is moved; of an all-reduce the op's result.
  TensorType type;
  /// Its shardings before and after; of an all-reduce the result's.
  std::optional<Sharding> from = std::nullopt, to = std::nullopt;
  /// The op that needs it.
  OriginPlace origin = {};
  /// Asked for by a sharding mark, or inserted for another op.
  CollectiveCause who = CollectiveCause::kInserted;
  /// Why, in a sentence, and what may be done about it; empty: nothing to say.
  std::string cause = {};
  std::string suggestion = {};

  /// `all-gather on axis "model", 64 KiB, of f32[32,64] P(none, "model") to P(none, none), from
  /// demo.cc:42 (dot_general): ...`
  std::string to_string() const;
};

/// A value: all that predict() found, in program order.
struct Prediction {
  std::vector<PredictedMove> moves;
  /// The shardings that the program's results are predicted to have; none without a mesh.
  std::vector<std::optional<Sharding>> results;
  /// What was left out.
  std::vector<std::string> notes;

  /// Those of a kind.
  std::vector<PredictedMove> of(CollectiveKind kind) const;
  /// Sum over all.
  std::int64_t bytes() const;
  /// A line for each move, with causes and suggestions.
  std::string to_string() const;
};

/// What the partitioner will have to insert into a program, told from the sharding rules of its ops
/// and the shardings of its leaves and marks, without a compiler: predict_shardings() says how
/// values lie, plan_reshard() what it takes where an op needs an operand otherwise.
///
/// The compiler may do better (it merges, hoists and drops collectives) and, where operands
/// disagree, otherwise. Ops that exchange the borders of shards along a split dimension (slice,
/// pad, concat, flip) are told as one permutation, whose bytes are a guess.
Prediction predict(const Graph& graph);

namespace internal {
/// The function's graph over parameters like these arguments; nothing is computed.
Graph graph_for_prediction(
    std::span<const Tensor> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& f);
}  // namespace internal

/// The same of a function, for arguments of these types and shardings. Nothing is compiled, run or
/// computed; f is traced once, as by jit.
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
/// @error what tracing f meets
template <class F, class... Arguments>
requires(!std::same_as<F, Graph>) Prediction predict(const F& f, const Arguments&... arguments) {
  return predict(internal::graph_for_prediction(
      internal::tensors_of(arguments...), [&](std::span<const Tensor> parameters) {
        return internal::call_with(parameters, f, arguments...);
      }));
}

}  // namespace meshard
