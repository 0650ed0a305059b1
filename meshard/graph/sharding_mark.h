// The sharding that mark_sharding attaches to a recorded value.
#pragma once
#include <optional>

#include "meshard/base/fields.h"
#include "meshard/graph/node.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Attributes of the sharding_constraint op. The optional is always set; Sharding has no default.
struct ShardingMark {
  std::optional<Sharding> sharding;
  MESHARD_FIELDS(sharding)
};

/// The sharding of a value whose node is a mark; empty for any other value.
std::optional<Sharding> marked_sharding(const Value& value);

/// The sharding that the program specified for a tensor. It comes from a mark, from an array that
/// was placed or returned by a compiled function, or from explicit axes. A sharding that the
/// compiler chose for a recorded value does not count, so that the program means the same whether
/// or not the value was already computed. A number has no specified sharding: it is replicated
/// wherever it is used.
std::optional<Sharding> specified_sharding(const Tensor& x);

}  // namespace meshard
