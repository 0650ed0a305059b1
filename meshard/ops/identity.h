// Ops whose result is their operand: instructions for the compiler, checkpoint() or the derivative.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// `x` itself; it passes no cotangent on.
Tensor stop_gradient(In x);

/// The same value; the compiler must not fuse, move or recompute across this point.
Tensor optimization_barrier(In x);

/// The same values; the compiler uses none of them before all are computed.
std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors,
                                         SourceLocation where = SourceLocation::current());

/// `x` itself, with a name to which the policies of checkpoint() can refer:
/// `CheckpointPolicy::named({"name"})` keeps it for the backward pass.
/// @error an empty name, or one that contains a comma or a quote.
Tensor checkpoint_name(In x, std::string_view name);

/// The name that checkpoint_name gave to the node's result; nullptr if none.
const std::string* checkpoint_name_of(const Node& node);

/// The same value with a sharding that the compiler must use. Dimensions beyond the sharding's are
/// not split. It only records an operation, for any `x`: to put data on devices use mark_sharding.
/// @error the sharding describes more dimensions than x has.
Tensor sharding_constraint(In x, const Sharding& sharding);

/// Why elements of a type cannot have the unreduced axes of a sharding: " is not a sum" (bools),
/// " has no order" (complex numbers, by a maximum). Empty: they can.
std::string_view why_not_unreduced(DType type, const Sharding& sharding);

}  // namespace meshard
