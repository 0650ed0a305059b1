// Reverse-mode differentiation of recorded values.
#pragma once
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// The cotangents of `inputs`, given the cotangents of `outputs`: the sum over all paths of
/// recorded nodes from an output to an input. Adds nodes; computes nothing. New nodes carry the
/// source line of the node they differentiate, and an input with a sharding gives that sharding to
/// its cotangent.
///
/// Inside a body that is being recorded (of a loop, a branch, checkpoint) a value from outside and
/// the parameter that stands for it there are one value: inputs may be recorded outside and outputs
/// inside, and paths may lead through captured values of all bodies around.
///
/// @pre as many cotangents as outputs, each of its output's type; inputs are floating-point
/// @post as many results as inputs, each of its input's type; zeros where no path leads
/// @error unimplemented if a path passes an op without a derivative, naming the op and its line, or
/// leaves a custom_vjp other than by its arguments; invalid argument if it passes a value of a
/// trace that has ended; failed precondition if it passes a value that was computed and no longer
/// knows its operands, because it was not recorded under KeepOperandsScope.
std::vector<Tensor> backward(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                             std::span<const Tensor> inputs, SourceLocation where);

}  // namespace meshard
