// Cotangents inside manual axes.
#pragma once
#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// A cotangent as its value wants it: of a local value, a local one that varies over exactly the
/// axes that the value varies over. May be undefined.
/// @pre it varies over no other axes
Tensor cotangent_like(const Value& value, const Tensor& cotangent);

/// What a node's vjp gave for operand `i`, as the operand's cotangent. The results of an op vary
/// over the axes of all operands; where this one does not, it stands for one copy on each device,
/// and its cotangent is the sum of theirs.
Tensor cotangent_of_operand(const Node& node, std::size_t i, const Tensor& gradient);

/// The cotangent of `outer`, which a body that is being recorded calls `inner`, given that of
/// `inner`. Inside manual axes the inner one may vary over more axes.
Tensor cotangent_of_captured(const Value& inner, const Value& outer, const Tensor& cotangent);

}  // namespace meshard
