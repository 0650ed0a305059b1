// check_sharded: does a function compute the same sharded and unsharded, and if not, where first?
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/trace/argument_list.h"

namespace meshard {

struct CheckShardedOptions {
  /// How far an element may be away, in ULPs of the largest value of its tensor: sums that devices
  /// make in parts are rounded otherwise. Integers and bools are always compared exactly.
  double max_ulps = 16;
};

/// A value: the first tensor that differs between the two runs.
struct ShardedDifference {
  /// The op that made it, `tanh`; `argument 0` for an argument that is returned.
  std::string tensor;
  /// The user's line that made it.
  SourceLocation where;
  TensorType type;
  /// How the sharded run lays it out.
  std::optional<Sharding> sharding;
  /// The element that is farthest away, and its two values.
  Dimensions index;
  double sharded = 0, unsharded = 0;
  /// Their distance in ULPs of the largest finite magnitude in the unsharded tensor; infinite if
  /// only one is a NaN or infinite, or if integers differ.
  double ulps = 0;
};

/// A value: what check_sharded found.
struct ShardedCheck {
  /// Tensors compared: the results, and if they differ every tensor on the way.
  std::size_t compared = 0;
  /// The largest distance among the results, in ULPs.
  double ulps = 0;
  std::optional<ShardedDifference> difference;

  bool ok() const { return !difference; }
  /// `3 results agree, at most 2 ULPs apart`, or where they part.
  std::string to_string() const;
};

namespace internal {
using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>;
ShardedCheck check_sharded(std::span<const Tensor> arguments, const TensorFunction& f,
                           const CheckShardedOptions& options, SourceLocation where);
}  // namespace internal

/// Runs f as its arguments are sharded, and once more on one device without any sharding, and
/// compares the results. If they differ, every recorded tensor is compared in program order, and
/// the first that differs is reported with the line that made it. f is traced once, as by jit; the
/// two programs compute the same graph.
///
/// @code
/// Mesh mesh({{"x", 4}});
/// Tensor w = mark_sharding(ones({6, 3}), mesh, P("x"));
/// ShardedCheck check = check_sharded([](Tensor w) { return sum(tanh(w)); }, w);
/// std::cout << (check.ok() ? "equal" : check.to_string()) << "\n";
/// @endcode
/// prints `equal`.
///
/// @error what tracing, compiling or running f meets; unimplemented for a function with a manual
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
