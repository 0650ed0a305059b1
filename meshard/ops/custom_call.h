#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Options of custom_call().
struct CustomCallOptions {
  /// The version number of StableHLO's calling convention. 4, the default, is a typed FFI handler.
  std::int64_t api_version = 4;
  /// Configuration passed to the target: for version 4 the text of an MLIR dictionary
  /// (`{count = 3 : i64}`), for the others any text. Default: none.
  std::string backend_config = {};
  /// Prevents the compiler from removing or duplicating the call. Default: false.
  bool has_side_effect = false;
  /// How the dimensions correspond, in Shardy's syntax with the sizes of this call. Empty, the
  /// default: every dimension is needed whole. Example:
  /// `([i, j])->([i]) {i=8, j=4} need_replication={j}`.
  std::string sharding_rule = {};
  /// If not negative: operands and results with two dimensions more than this are batches of
  /// matrices, which the target takes in column-major order, as LAPACK does. The others, and all by
  /// default, are in an order that the compiler chooses, which is row-major on CPUs.
  std::int64_t column_major_after = -1;
};

/// Calls code registered with the plugin by name: an FFI handler or a compiler target. The results
/// have the types given here, unchecked.
///
/// A sharding rule propagates shardings across the call. Whether the target runs on shards depends
/// on the plugin: unless a partitioner for it is registered there, each device computes the whole
/// call. For code that works on local shards, call it inside manual(). Use custom_vjp for a
/// derivative.
/// @error an empty target; a rule that does not parse, or does not fit the operands and results. An
/// unknown target is reported by the plugin at the first run.
std::vector<Tensor> custom_call(const std::string& target, const std::vector<Tensor>& operands,
                                const std::vector<TensorType>& results,
                                CustomCallOptions options = {},
                                SourceLocation where = SourceLocation::current());

}  // namespace meshard
