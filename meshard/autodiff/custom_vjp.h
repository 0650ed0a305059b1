// Functions with a user-defined derivative.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure_match.h"

namespace meshard {

namespace internal {

/// Maps residuals and the results' cotangents to the arguments' cotangents. A result without a
/// cotangent has zeros; an undefined returned cotangent is zero.
using Pullback =
    std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const Tensor>)>;

/// The values of `results`, with `pullback` as their derivative with respect to `arguments`.
std::vector<Tensor> with_pullback(std::span<const Tensor> results,
                                  std::span<const Tensor> arguments,
                                  std::span<const Tensor> residuals, Pullback pullback,
                                  SourceLocation where);

/// The tensors to pass to a function with a user-defined derivative in place of `arguments`. Where
/// they may be differentiated, they are new nodes, which distinguishes uses of arguments from
/// captured values.
std::vector<Tensor> own_arguments(const std::vector<Tensor>& arguments);

/// True for the nodes that with_pullback records.
bool is_custom_vjp(const Node& node);
/// The arguments of such a node.
std::span<const Value> custom_arguments(const Node& node);
/// The results of the user's function that such a node passes through.
std::span<const Value> custom_results(const Node& node);

/// The same values; their cotangents pass through one optimization_barrier together.
std::vector<Tensor> behind_barrier(const std::vector<Tensor>& inputs);

/// Wraps a user's `backward`: unpacks tensors into its structures and packs its results, which are
/// matched by path if they have the type of the arguments.
template <class Backward, class Arguments, class Residuals, class Result>
Pullback structured_pullback(const Backward& backward, Arguments arguments, Residuals residuals,
                             Result result) {
  return [backward, arguments = std::move(arguments), residuals = std::move(residuals),
          result = std::move(result)](std::span<const Tensor> saved,
                                      std::span<const Tensor> cotangents) {
    auto found = backward(structure::with_tensors(residuals, saved),
                          structure::with_tensors(result, cotangents));
    if constexpr (std::is_same_v<decltype(found), Arguments>)
      return structure::matched_tensors(arguments, found, {"custom_vjp", "argument", "cotangent"},
                                        effective_source({}));
    else
      return structure::tensors(found);
  };
}

/// The structure without its tensors, so that the values are not kept alive.
template <class T>
T without_tensors(const T& value) {
  return structure::with_tensors(value, std::vector<Tensor>(structure::tensors(value).size()));
}

}  // namespace internal

/// Makes a function with a user-defined derivative. `forward(arguments...)` returns
/// `std::pair(result, residuals)`: the function's result, and what its derivative needs.
/// `backward(residuals, cotangent)` returns the cotangents of the arguments, one tensor for each
/// tensor of the arguments: in a tuple of the arguments' types, by path, and in any other structure
/// (a tensor, a tuple, ...) in order. An undefined Tensor is zero.
///
/// Works wherever gradients do: under grad and vjp, inside jit and lazily. Derivatives of higher
/// order differentiate `backward` and the residuals. Tensors that `forward` captures are constants:
/// requesting a derivative with respect to them is an error. If no derivative is taken, only
/// `forward` is compiled, without the residuals.
///
///     auto clipped = custom_vjp([](Tensor x) { return std::pair(x, std::tuple<>()); },
///                               [](std::tuple<>, Tensor g) { return clip(g, -1, 1); });
///
/// @error when the derivative is recorded: invalid argument if `backward` returns a wrong number of
/// cotangents, or one whose type differs from its argument's; unimplemented for a derivative with
/// respect to a value that the function captures.
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
    SourceLocation where = internal::recorder().outer
                               ? *internal::recorder().outer
                               : (results.empty() ? SourceLocation{} : results.front().where());
    return structure::with_tensors(
        result, internal::with_pullback(
                    results, taken, saved,
                    internal::structured_pullback(backward, internal::without_tensors(own),
                                                  internal::without_tensors(residuals),
                                                  internal::without_tensors(result)),
                    where));
  };
}

/// Makes a function with the same value whose cotangents pass through an optimization_barrier. One
/// barrier covers the cotangents of all arguments: the compiler cannot delay one of them or move
/// computation across it (torch_xla has a function of this name).
template <class F>
auto apply_backward_optimization_barrier(F f) {
  return [f = std::move(f)]<class... Arguments>(const Arguments&... arguments) {
    std::vector<Tensor> inputs = structure::tensors(std::tie(arguments...));
    return std::apply(f, structure::with_tensors(std::tuple<Arguments...>(arguments...),
                                                 internal::behind_barrier(inputs)));
  };
}

}  // namespace meshard
