// Functions that bring their own derivative.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"

namespace meshard {

namespace internal {

/// From residuals and the results' cotangents (zeros where there is none) to the arguments'
/// cotangents; an undefined one is zero.
using Pullback =
    std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const Tensor>)>;

/// The same values as `results`, of which the derivative with respect to `arguments` is what
/// `pullback` says.
std::vector<Tensor> with_pullback(std::span<const Tensor> results,
                                  std::span<const Tensor> arguments,
                                  std::span<const Tensor> residuals, Pullback pullback,
                                  SourceLocation where);

/// What a function with a derivative of its own is given for `arguments`: where they may be
/// differentiated, nodes of its own, by which its uses of them differ from captured values.
std::vector<Tensor> own_arguments(const std::vector<Tensor>& arguments);

/// True for the nodes that with_pullback records.
bool is_custom_vjp(const Node& node);
/// The arguments of such a node.
std::span<const Value> custom_arguments(const Node& node);
/// The results of such a node that its function gave.
std::span<const Value> custom_results(const Node& node);

/// The same values, of which the cotangents pass one optimization_barrier together.
std::vector<Tensor> behind_barrier(const std::vector<Tensor>& inputs);

/// One that takes the structures apart and puts them together again for a user's `backward`.
template <class Backward, class Residuals, class Result>
Pullback structured_pullback(const Backward& backward, Residuals residuals, Result result) {
  return [backward, residuals = std::move(residuals), result = std::move(result)](
             std::span<const Tensor> saved, std::span<const Tensor> cotangents) {
    return structure::tensors(backward(structure::with_tensors(residuals, saved),
                                       structure::with_tensors(result, cotangents)));
  };
}

/// The structure alone: a kept one would keep the values.
template <class T>
T without_tensors(const T& value) {
  return structure::with_tensors(value, std::vector<Tensor>(structure::tensors(value).size()));
}

}  // namespace internal

/// A function with a derivative of its own. `forward(arguments...)` gives `std::pair(result,
/// residuals)`: what the function returns, and what its derivative needs. `backward(residuals,
/// cotangent)` gives the cotangents of the arguments, one tensor for each tensor of the arguments
/// in order, as any structure (a tensor, a tuple, ...). An undefined Tensor is zero.
///
/// Works wherever gradients do: under grad and vjp, inside jit and lazily. Derivatives of higher
/// order go through `backward` and the residuals. Tensors that `forward` captures are constants: it
/// has no derivative with respect to them, and asking for one is an error. What compiles is
/// `forward` alone where no derivative is taken, without the residuals.
///
///     auto clipped = custom_vjp([](Tensor x) { return std::pair(x, std::tuple<>()); },
///                               [](std::tuple<>, Tensor g) { return clip(g, -1, 1); });
///
/// @error when the derivative is recorded: a cotangent too many or too few, or of another type than
/// its argument; unimplemented: a derivative with respect to a value that the result depends on
/// other than by the arguments.
template <class Forward, class Backward>
auto custom_vjp(Forward forward, Backward backward) {
  return [forward = std::move(forward),
          backward = std::move(backward)]<class... Arguments>(const Arguments&... arguments) {
    std::vector<Tensor> taken = internal::own_arguments(structure::tensors(std::tie(arguments...)));
    const std::tuple<Arguments...> own =
        structure::with_tensors(std::tuple<Arguments...>(arguments...), taken);
    auto [result, residuals] = std::apply(forward, own);
    std::vector<Tensor> results = structure::tensors(result);
    std::vector<Tensor> saved = structure::tensors(residuals);
    SourceLocation where = recorder().outer
                               ? *recorder().outer
                               : (results.empty() ? SourceLocation{} : results.front().where());
    return structure::with_tensors(
        result, internal::with_pullback(
                    results, taken, saved,
                    internal::structured_pullback(backward, internal::without_tensors(residuals),
                                                  internal::without_tensors(result)),
                    where));
  };
}

/// A function of the same value whose derivative puts one optimization_barrier around the
/// cotangents of all its arguments together: the compiler computes none of them late, and moves
/// nothing across (torch_xla has a function of this name).
template <class F>
auto apply_backward_optimization_barrier(F f) {
  return [f = std::move(f)]<class... Arguments>(const Arguments&... arguments) {
    std::vector<Tensor> inputs = structure::tensors(std::tie(arguments...));
    return std::apply(f, structure::with_tensors(std::tuple<Arguments...>(arguments...),
                                                 internal::behind_barrier(inputs)));
  };
}

}  // namespace meshard
