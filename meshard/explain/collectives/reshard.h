// Changes of sharding in a compiled program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/explain/collectives/collective.h"

namespace meshard {

/// How a value changes its sharding.
enum class ReshardKind {
  kGather,             ///< a dimension becomes whole: an all-gather
  kExchange,           ///< sharding moves to another dimension or axis: all-to-all, permutation
  kFullRematerialize,  ///< every device materializes the whole value, then slices it
};

/// `gather`, `exchange`, `full rematerialization`
std::string_view to_string(ReshardKind kind);

/// Value type: one reshard in the compiled program.
struct Reshard {
  ReshardKind kind = ReshardKind::kGather;
  /// The instruction in the compiled module: the collective, or the copy.
  std::string instruction = {};
  /// The value's global type, `f32[4096,4096]`; empty if unknown.
  std::string type = {};
  /// Shardings before and after, as text; empty if unknown.
  std::string from = {}, to = {};
  /// Bytes that one device receives in one execution, and the number of executions.
  std::int64_t bytes = 0;
  std::int64_t executions = 1;
  CollectiveOrigin origin = {};
  CollectiveCause who = CollectiveCause::kUnknown;
  /// The reason: `matmul at gpt.cc:42 needs all of dimension 1, which is split by "model"`.
  std::string cause = {};

  std::string to_string() const;
  friend bool operator==(const Reshard&, const Reshard&) = default;
};

}  // namespace meshard
