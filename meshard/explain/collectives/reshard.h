// Changes of sharding in a compiled program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"

namespace meshard {

/// How a value changes its sharding.
enum class ReshardKind {
  kGather,             ///< a dimension becomes whole: an all-gather
  kExchange,           ///< sharding moves to another dimension or axis: all-to-all, permutation
  kFullRematerialize,  ///< every device materializes the whole value, then slices it
};

template <>
struct EnumNames<ReshardKind> {
  using enum ReshardKind;
  static constexpr EnumName<ReshardKind> kNames[] = {
      {kGather, "gather"}, {kExchange, "exchange"}, {kFullRematerialize, "full rematerialization"}};
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
  /// Bytes that one device receives in one execution.
  std::int64_t bytes = 0;
  /// Number of executions in one run.
  std::int64_t executions = 1;
  CollectiveOrigin origin = {};
  /// Who requested it.
  CollectiveCause who = CollectiveCause::kUnknown;
  /// The reason: `matmul at gpt.cc:42 needs all of dimension 1, which is split by "model"`.
  std::string cause = {};

  MESHARD_FIELDS(kind, instruction, type, from, to, bytes, executions, origin, who, cause)
  std::string to_string() const;
  friend bool operator==(const Reshard&, const Reshard&) = default;
};

}  // namespace meshard
