// check_sharded: finds the first tensor that differs between a sharded and an unsharded run.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/fields.h"
#include "meshard/graph/node.h"
#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/trace/argument_list.h"

namespace meshard {

/// Options of check_sharded().
struct CheckShardedOptions {
  /// Allowed distance of the results, in ULPs of the largest value of the tensor. Integers and
  /// bools are then compared exactly. Default: what rounding explains; see check_sharded().
  std::optional<double> max_ulps = std::nullopt;
};

/// Value type: the first tensor that differs between the two runs.
struct ShardedDifference {
  /// The op that produced the tensor, `tanh`; `argument 0` if an argument is returned.
  std::string tensor;
  /// The source line of the op.
  SourceLocation where;
  TensorType type;
  /// The tensor's sharding in the sharded run.
  std::optional<Sharding> sharding;
  /// The element with the largest distance.
  Dimensions index;
  /// Its value in the sharded run.
  double sharded = 0;
  /// Its value on one device.
  double unsharded = 0;
  /// Their distance in ULPs of the largest finite magnitude in the unsharded tensor; infinite if
  /// only one of them is NaN or infinite, or if integers differ.
  double ulps = 0;

  MESHARD_FIELDS(tensor, where, type, sharding, index, sharded, unsharded, ulps)
};

/// Value type: the result of check_sharded().
struct ShardedCheck {
  /// Number of compared tensors: the results, and if they differ, all intermediates.
  std::size_t compared = 0;
  /// The largest distance among the results, in ULPs. If it is large and there is no difference,
  /// rounding explains it.
  double ulps = 0;
  /// None if the runs agree.
  std::optional<ShardedDifference> difference;

  MESHARD_FIELDS(compared, ulps, difference)
  bool ok() const { return !difference; }
  /// `3 results agree, at most 2 ULPs apart`, or a description of the first difference.
  std::string to_string() const;
};

namespace internal {
using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>;
ShardedCheck check_sharded(std::span<const Tensor> arguments, const TensorFunction& f,
                           const CheckShardedOptions& options, SourceLocation where);
}  // namespace internal

/// Compares the results of f run with its arguments' shardings and without sharding. The unsharded
/// run uses one device. If the results differ, all recorded tensors are compared in program order,
/// and the first difference is reported with its source line. f is traced once, as by jit; both
/// programs compute the same graph.
///
/// Distributed sums are rounded differently, and later ops may amplify the difference. By default,
/// results that are more than 16 ULPs apart are therefore checked op by op: each op whose results
/// differ runs again, without shardings, on the operands of the sharded run. If these agree up to
/// what the op's own rounding explains (explained_by_rounding(), which considers the length of its
/// sums), the results agree: no op was computed wrongly. Else that op is the difference.
///
/// @code
/// Mesh mesh({{"x", 4}});
/// Tensor w = mark_sharding(ones({6, 3}), mesh, P("x"));
/// ShardedCheck check = check_sharded([](Tensor w) { return sum(tanh(w)); }, w);
/// std::cout << (check.ok() ? "equal" : check.to_string()) << "\n";
/// @endcode
/// prints `equal`.
///
/// @error errors of tracing, compiling or running f; unimplemented for a function with a manual
/// region, whose local values exist on its mesh only.
template <class F, class... Arguments>
ShardedCheck check_sharded(const CheckShardedOptions& options, const F& f,
                           const Arguments&... arguments) {
  internal::TensorFunction traced = [&](std::span<const Tensor> parameters) {
    return internal::call_with(parameters, f, arguments...);
  };
  return internal::check_sharded(internal::tensors_of(arguments...), traced, options, {});
}

template <class F, class... Arguments>
requires(!std::same_as<F, CheckShardedOptions>) ShardedCheck
    check_sharded(const F& f, const Arguments&... arguments) {
  return check_sharded(CheckShardedOptions{}, f, arguments...);
}

}  // namespace meshard
