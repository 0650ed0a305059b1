// Cotangents inside manual axes.
#pragma once
#include "meshard/graph/annotation.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The cotangent in the form that its value needs. For a local value it is a local value that
/// varies over exactly the same axes. May be undefined.
/// @pre the cotangent varies over no other axes
Tensor cotangent_like(const Value& value, const Tensor& cotangent);

/// Converts the result of a node's vjp for operand `i` to the operand's cotangent. The results of
/// an op vary over the axes of all operands. If this operand does not vary over one of them, each
/// device used a copy of it, and its cotangent is the sum over the copies.
Tensor cotangent_of_operand(const Node& node, std::size_t i, const Tensor& gradient);

/// The cotangent of `outer`, given that of `inner`, which represents it in the body being recorded.
/// Inside manual axes, the inner value may vary over more axes.
Tensor cotangent_of_captured(const Value& inner, const Value& outer, const Tensor& cotangent);

}  // namespace meshard
