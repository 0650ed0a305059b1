// The sharding that mark_sharding leaves on a recorded value.
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

/// The mark on a recorded value, if its node is one.
std::optional<Sharding> marked_sharding(const Value& value);

/// The sharding that somebody said: of a mark, of an array that was placed or came out of a
/// compiled function, or over explicit axes. What the compiler chose for a recorded value is not
/// it: a program means the same whether a value was computed before or not. Nothing is said of a
/// number: it is whole wherever it is used.
std::optional<Sharding> said_sharding(const Tensor& x);

}  // namespace meshard
