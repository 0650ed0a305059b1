// jacrev, jacfwd and hessian: full Jacobians and Hessians.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/autodiff/jvp.h"

namespace meshard {

namespace internal {

/// A linear function of the tensor of one argument, with all other arguments zero. Together, the
/// functions of all arguments define a derivative.
using LinearMap = std::function<std::vector<Tensor>(std::size_t argument, const Tensor&)>;

/// The matrix of a linear map in blocks: blocks[i][j] belongs to result i and argument j. Its shape
/// is the argument's shape followed by the result's. The map is applied to all unit vectors at once
/// (vmap), or one at a time if an op has no batch rule.
std::vector<std::vector<Tensor>> matrix_of(const LinearMap& map, std::span<const Tensor> arguments,
                                           SourceLocation where);

/// The blocks of jacrev; the map is the pullback.
std::vector<std::vector<Tensor>> reverse_blocks(std::span<const Tensor> outputs,
                                                std::span<const Tensor> inputs,
                                                SourceLocation where);
/// The blocks of jacfwd; the map is the push-forward.
std::vector<std::vector<Tensor>> forward_blocks(std::span<const Tensor> outputs,
                                                std::span<const Tensor> inputs,
                                                SourceLocation where);

/// Arranges blocks[i][j] of output i and input j in the structure that jacrev and jacfwd return.
template <class Result, class Argument>
auto jacobian_structure(const Result& result, const Argument& argument,
                        const std::vector<std::vector<Tensor>>& blocks) {
  if constexpr (structure::Leaf<Result>) {
    return structure::with_tensors(argument, blocks.front());
  } else if constexpr (structure::Leaf<Argument>) {
    std::vector<Tensor> column;
    for (const auto& row : blocks) column.push_back(row.front());
    return structure::with_tensors(result, column);
  } else {
    std::vector<Argument> rows;
    for (const auto& row : blocks) rows.push_back(structure::with_tensors(argument, row));
    return rows;
  }
}

/// Implements jacrev and jacfwd; `blocks_of` is one of the two functions above.
template <std::size_t Wanted, class F, class BlocksOf>
auto jacobian(F f, BlocksOf blocks_of) {
  return [f = std::move(f), blocks_of]<class... Arguments>(const Arguments&... arguments) {
    static_assert(Wanted < sizeof...(Arguments),
                  "the index of the argument to differentiate is out of range");
    SourceLocation where =
        internal::recorder().outer ? *internal::recorder().outer : SourceLocation{};
    internal::KeepOperandsScope keep;
    std::vector<Tensor> inputs;
    std::tuple<Arguments...> replaced(arguments...);
    std::get<Wanted>(replaced) = make_inputs(std::get<Wanted>(replaced), Wanted, inputs, where);
    auto result = apply_rolled(f, replaced);
    std::vector<Tensor> outputs = structure::tensors(result);
    if (!where.known() && !outputs.empty()) where = outputs.front().where();
    return jacobian_structure(result, std::get<Wanted>(replaced),
                              blocks_of(outputs, inputs, where));
  };
}

}  // namespace internal

/// Makes a function of the same arguments that returns the Jacobian of f. It differentiates with
/// respect to one argument, all rows at once in reverse mode: best for many inputs and few results.
///
/// For a tensor x and a result y, the Jacobian has the shape y.shape + x.shape. If the result is a
/// tensor and the argument a structure, it has the argument's structure; if the argument is a
/// tensor and the result a structure, it has the result's structure. If both are structures, it is
/// a std::vector with the argument's structure for each tensor of the result.
///
/// @error invalid argument unless all results are floating-point.
template <std::size_t Wanted = 0, class F>
auto jacrev(F f) {
  return internal::jacobian<Wanted>(std::move(f), internal::reverse_blocks);
}

/// The same in forward mode, all columns at once: best for few inputs and many results.
template <std::size_t Wanted = 0, class F>
auto jacfwd(F f) {
  return internal::jacobian<Wanted>(std::move(f), internal::forward_blocks);
}

/// Makes a function of the same arguments that returns the Hessian of f. f returns a float of rank
/// 0; the Hessian is with respect to one argument and is computed forward over reverse. For a
/// tensor x it has the shape x.shape + x.shape; for a structure it is a std::vector with the
/// argument's structure for each of its tensors. To multiply by the Hessian, use hvp.
template <std::size_t Wanted = 0, class F>
auto hessian(F f) {
  return jacfwd<Wanted>(jacrev<Wanted>(std::move(f)));
}

}  // namespace meshard
