// Reverse-mode differentiation of recorded values.
#pragma once
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Computes the cotangents of `inputs` from those of `outputs`: the sum over all paths of recorded
/// nodes from an output to an input. Records nodes; computes nothing. New nodes have the source
/// line of the node that they differentiate. The cotangent of an input with a sharding gets that
/// sharding.
///
/// Inside a body that is being recorded (of a loop, a branch, checkpoint), an outer value and the
/// parameter that represents it are one value: inputs may be recorded outside and outputs inside,
/// and paths may lead through captured values of all enclosing bodies.
///
/// @pre as many cotangents as outputs, each of its output's type; inputs are floating-point or
/// complex
/// @post as many results as inputs, each of its input's type; zeros where no path leads
/// @error unimplemented if a path passes an op without a derivative (names the op and its line), or
/// passes a custom_vjp through a captured value; invalid argument if it passes a value of a trace
/// that has ended; failed precondition if it passes a computed value that no longer has its
/// operands, because it was not recorded under KeepOperandsScope.
std::vector<Tensor> backward(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                             std::span<const Tensor> inputs, SourceLocation where);

}  // namespace meshard
