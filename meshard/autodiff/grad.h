// grad, value_and_grad and vjp: transformations of functions to their derivatives.
#pragma once
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/autodiff/backward.h"
#include "meshard/graph/record.h"
#include "meshard/graph/structure_match.h"
#include "meshard/ops/rolling/roll_layers.h"

namespace meshard {

namespace internal {

/// A fresh copy to differentiate with respect to; no recorded value depends on it.
/// @error invalid argument unless floating-point or complex; `path` names it.
Tensor differentiation_input(const Tensor& argument, const std::string& path, SourceLocation where);
/// A recorded tensor of the same value and sharding; the compiler removes the node.
Tensor identity_of(const Tensor& argument);
/// The constant 1 in the type of `loss`. @error invalid argument unless it is a float of rank 0.
Tensor loss_seed(const Tensor& loss, SourceLocation where);

/// Replaces the tensors of one argument with new inputs, and appends these to `inputs`.
template <class T>
T make_inputs(const T& argument, std::size_t position, std::vector<Tensor>& inputs,
              SourceLocation where) {
  std::vector<Tensor> fresh;
  structure::for_each(
      argument,
      [&](const auto& leaf, const std::string& path) {
        if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
          fresh.push_back(differentiation_input(leaf, path, where));
      },
      cat("argument ", position));
  for (const Tensor& input : fresh) inputs.push_back(input);
  return structure::with_tensors(argument, fresh);
}

template <std::size_t I, std::size_t... Wanted>
inline constexpr bool kIsWanted = ((I == Wanted) || ...);

/// The loss in f's result: the tensor itself, or the first element of a pair (loss, auxiliary).
inline const Tensor& loss_of(const Tensor& result) { return result; }
template <class Auxiliary>
const Tensor& loss_of(const std::pair<Tensor, Auxiliary>& result) {
  return result.first;
}

}  // namespace internal

/// Makes a function of the same arguments that returns (f's result, gradients). f returns a float
/// tensor of rank 0, or a pair (loss, auxiliary) whose second element is passed through. A gradient
/// has the structure of its argument; `value_and_grad<0, 2>(f)` returns a tuple for several
/// arguments; the default is argument 0. Gradients take the shardings of their primals.
///
/// @error invalid argument if the loss is not a float of rank 0, or a tensor of a wanted argument
/// is not floating-point or complex.
template <std::size_t... Wanted, class F>
auto value_and_grad(F f) {
  if constexpr (sizeof...(Wanted) == 0) {
    return value_and_grad<0>(std::move(f));
  } else {
    return [f = std::move(f)]<class... Arguments>(const Arguments&... arguments) {
      static_assert(((Wanted < sizeof...(Arguments)) && ...),
                    "the index of an argument to differentiate is out of range");
      SourceLocation where =
          internal::recorder().outer ? *internal::recorder().outer : SourceLocation{};
      internal::KeepOperandsScope keep;
      std::vector<Tensor> inputs;
      auto replaced = [&]<std::size_t... I>(std::index_sequence<I...>) {
        auto one = [&]<std::size_t Position, class T>(std::integral_constant<std::size_t, Position>,
                                                      const T& argument) {
          if constexpr (internal::kIsWanted<Position, Wanted...>)
            return internal::make_inputs(argument, Position, inputs, where);
          else
            return argument;
        };
        // Braces, so that inputs are made from left to right.
        return std::tuple<Arguments...>{
            one(std::integral_constant<std::size_t, I>{}, arguments)...};
      }
      (std::index_sequence_for<Arguments...>{});
      auto result = internal::apply_rolled(f, replaced);
      const Tensor& loss = internal::loss_of(result);
      Tensor seed = internal::loss_seed(loss, where);
      std::vector<Tensor> gradients =
          backward(std::span(&loss, 1), std::span(&seed, 1), inputs, loss.where());
      // Inputs are in argument order; each wanted argument takes its own.
      auto given = std::forward_as_tuple(arguments...);
      std::size_t used = 0;
      auto parts = [&]<std::size_t... I>(std::index_sequence<I...>) {
        auto one = [&]<std::size_t Position>(std::integral_constant<std::size_t, Position>) {
          if constexpr (internal::kIsWanted<Position, Wanted...>) {
            const auto& argument = std::get<Position>(given);
            std::size_t count = structure::tensors(argument).size();
            auto part = structure::with_tensors(
                argument, std::span<const Tensor>(gradients).subspan(used, count));
            used += count;
            return std::tuple<decltype(part)>(part);  // deduced from a pair, it would be its parts
          } else {
            return std::tuple<>();
          }
        };
        // Explicit types: deduced from a single tuple, it would be a copy of that tuple.
        std::tuple<decltype(one(std::integral_constant<std::size_t, I>{}))...> ordered{
            one(std::integral_constant<std::size_t, I>{})...};
        return std::apply([](auto&... each) { return std::tuple_cat(each...); }, ordered);
      }
      (std::index_sequence_for<Arguments...>{});
      if constexpr (sizeof...(Wanted) == 1)
        return std::pair(std::move(result), std::move(std::get<0>(parts)));
      else
        return std::pair(std::move(result), std::move(parts));
    };
  }
}

/// Makes a function of the same arguments that returns only the gradients; see value_and_grad.
template <std::size_t... Wanted, class F>
auto grad(F f) {
  return [both = value_and_grad<Wanted...>(std::move(f))](const auto&... arguments) {
    return both(arguments...).second;
  };
}

/// Returns f's result at `arguments` and its pullback. The pullback maps a cotangent with the
/// result's structure to the tuple of the arguments' cotangents. All tensors of the arguments must
/// be floating-point or complex.
template <class F, class... Arguments>
auto vjp(F f, const Arguments&... arguments) {
  SourceLocation where =
      internal::recorder().outer ? *internal::recorder().outer : SourceLocation{};
  internal::KeepOperandsScope keep;
  std::vector<Tensor> inputs;
  auto replaced = [&]<std::size_t... I>(std::index_sequence<I...>) {
    // Braces, so that inputs are made from left to right.
    return std::tuple<Arguments...>{internal::make_inputs(arguments, I, inputs, where)...};
  }
  (std::index_sequence_for<Arguments...>{});
  auto result = internal::apply_rolled(f, replaced);
  auto pullback = [inputs, result, replaced, where](const auto& cotangent) {
    std::vector<Tensor> outputs = structure::tensors(result);
    std::vector<Tensor> seeds =
        structure::matched_tensors(result, cotangent, {"vjp", "result", "cotangent", true}, where);
    internal::KeepOperandsScope keep_operands;
    return structure::with_tensors(replaced, backward(outputs, seeds, inputs, where));
  };
  return std::pair(result, pullback);
}

}  // namespace meshard
