#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

struct CustomCallAttributes {
  std::string target;
  std::string results;  ///< the results' types, as `f32[4,8] i32[]`
  std::int64_t api_version = 4;
  std::string backend_config;
  bool has_side_effect = false;
  std::string sharding_rule;
  MESHARD_FIELDS(target, results, api_version, backend_config, has_side_effect, sharding_rule)
};

/// What custom_call may be told besides.
struct CustomCallOptions {
  /// StableHLO's number of the calling convention; 4 is a typed FFI handler.
  std::int64_t api_version = 4;
  /// What the target gets besides its operands: of version 4 the text of an MLIR dictionary
  /// (`{count = 3 : i64}`), of the others any text.
  std::string backend_config = {};
  /// The compiler neither drops nor repeats the call.
  bool has_side_effect = false;
  /// How the dimensions correspond, as Shardy text with the sizes of this call: `([i, j])->([i])
  /// {i=8, j=4} need_replication={j}`. Empty: every dimension is needed whole.
  std::string sharding_rule = {};
};

/// Calls code that the plugin knows by name (a registered FFI handler, or one of the compiler's own
/// targets). The results have the types that are said here; nobody checks them.
///
/// A sharding rule tells shardings across the call. Whether the target runs on shards is the
/// plugin's matter: without a partitioner for it there, each device computes all of it. For code
/// that works on local shards, call it inside manual(). A derivative is given with custom_vjp.
/// @error an empty target; a rule that does not parse, or does not fit the operands and results.
/// The plugin says at the first run if it does not know the target.
std::vector<Tensor> custom_call(const std::string& target, const std::vector<Tensor>& operands,
                                const std::vector<TensorType>& results,
                                CustomCallOptions options = {},
                                SourceLocation where = SourceLocation::current());

}  // namespace meshard
