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

/// The tensor for a C++ number passed as an argument. It has rank 0 and the default dtype of its
/// kind, and is traced.
/// @error invalid argument, naming the argument, if that dtype cannot hold the number.
Tensor number_argument(const Scalar& number, std::size_t position, SourceLocation where);

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
