// Where a compiled program moves a value from one sharding to another.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/explain/collective.h"

namespace meshard {

/// How a value changes its sharding.
enum class ReshardKind {
  kGather,             ///< a dimension is made whole: an all-gather
  kExchange,           ///< a split moves to another dimension or axis: all-to-all, permutation
  kFullRematerialize,  ///< the whole value is made on every device, and cut again
};

/// `gather`, `exchange`, `full rematerialization`
std::string_view to_string(ReshardKind kind);

/// A value: one resharding that the compiled program does.
struct Reshard {
  ReshardKind kind = ReshardKind::kGather;
  /// Of the compiled module: the collective, or the copy.
  std::string instruction = {};
  /// The value's type as the user knows it, `f32[4096,4096]`; empty if not known.
  std::string type = {};
  /// Shardings before and after, as text; empty if not known.
  std::string from = {}, to = {};
  /// Bytes that one device gets, each time, and how often it does.
  std::int64_t bytes = 0;
  std::int64_t executions = 1;
  CollectiveOrigin origin = {};
  CollectiveCause who = CollectiveCause::kUnknown;
  /// Why, in a sentence: `matmul at gpt.cc:42 needs dimension 1 whole, which is split by "model"`.
  std::string cause = {};

  std::string to_string() const;
  friend bool operator==(const Reshard&, const Reshard&) = default;
};

}  // namespace meshard
