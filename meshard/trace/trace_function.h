// Records a function as a program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "meshard/array/number.h"
#include "meshard/base/function_ref.h"
#include "meshard/graph/tensor.h"

namespace meshard {

class Graph;

}  // namespace meshard

namespace meshard::internal {

/// True for a number that the default dtype of its kind holds.
bool is_default_number(const Scalar& number);

/// The tensor for a C++ number passed as an argument: it has rank 0 and the widest dtype of its
/// kind, so that no precision is lost.
/// @error invalid argument, naming the argument, for a number that no dtype holds.
Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where);

/// What the function receives for a number, given the tensor that number_argument() made or the
/// parameter for it: a weakly typed tensor.
Tensor number_inside(const Scalar& number, const Tensor& wide);

/// Records what `tracer` does with fresh parameters that have the types and shardings of
/// `arguments`. Tensors that the function captures become the graph's captured() values
/// (Graph::build), which its program passes as hidden arguments.
/// @error a result has no value; what the function throws.
Graph trace_function(std::span<const Tensor* const> arguments,
                     FunctionRef<std::vector<Tensor>(std::span<const Tensor> parameters)> tracer,
                     SourceLocation where);

/// The indices of the parameters that belong to donated arguments. Argument `i` has `leaves[i]`
/// parameters.
/// @error invalid argument: `donate` names an argument that does not exist.
std::vector<std::uint32_t> donated_parameters(const std::vector<std::size_t>& donate,
                                              const std::vector<std::size_t>& leaves,
                                              SourceLocation where);

}  // namespace meshard::internal
