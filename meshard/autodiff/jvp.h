// linearize, jvp and hvp: directional derivatives.
#pragma once
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/tensor.h"

namespace meshard {

// Forward-mode differentiation of recorded values.

/// A value: the derivative of `outputs` at recorded `inputs`. It is a linear function from tangents
/// of the inputs to tangents of the outputs.
///
/// Computed as the transpose of the transpose: the pullback is linear in its cotangents, so its own
/// vjp with respect to them is the derivative itself. No op needs a forward rule (Radul, Paszke,
/// Frostig, Johnson, Maclaurin: You Only Linearize Once, POPL 2023, does the same in the other
/// direction). Recording takes two backward passes; of the first, only the nodes that the second
/// passes through become part of a program.
class PushForward {
 public:
  /// Records the pullback for placeholder cotangents. Call it inside a KeepOperandsScope.
  /// @pre inputs are floating-point or complex; a floating-point output that has manual axes varies
  /// over them
  /// @error unimplemented if a path passes an op without a derivative.
  PushForward(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
              SourceLocation where);

  /// The tangents of the outputs, each of its output's type; zeros for outputs that are neither
  /// floating-point nor complex. An undefined tangent is zero. May be called again.
  /// @error invalid argument unless there is one tangent for each input, of the input's type.
  std::vector<Tensor> operator()(std::span<const Tensor> tangents, SourceLocation where) const;

 private:
  std::vector<TensorType> types_;  // of the inputs
  std::vector<Tensor> outputs_;    // only their types are used
  std::vector<Tensor> seeds_;      // cotangents of the floating-point outputs, in order
  std::vector<Tensor> pulled_;     // the cotangents of the inputs, given these
};

namespace internal {

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};

/// A tuple is several arguments; any other value is one argument.
template <class T>
auto as_arguments(const T& value) {
  if constexpr (IsTuple<T>::value)
    return value;
  else
    return std::tuple<T>(value);
}

/// The gradient with respect to all `count` arguments, as a tuple.
template <std::size_t count, class F>
auto gradients_of_all(F f) {
  return [f = std::move(f)](const auto&... arguments) {
    auto pass = [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto gradients = grad<I...>(f)(arguments...);
      if constexpr (count == 1)
        return std::tuple<decltype(gradients)>(std::move(gradients));
      else
        return gradients;
    };
    return pass(std::make_index_sequence<count>());
  };
}

}  // namespace internal

/// Returns f's result at `arguments` and the derivative there, as a linear function. That function
/// maps tangents (one for each argument, of its structure) to the tangent of the result, which has
/// the result's structure. It may be called for many tangents; f is recorded once. All tensors of
/// the arguments must be floating-point or complex; results of other dtypes have zero tangents. An
/// undefined tangent is zero.
///
///     auto [y, push] = linearize(f, x);
///     Tensor dy = push(dx);
///
/// @error unimplemented if a path passes an op without a derivative. When the derivative is called:
/// invalid argument unless the tangents have the types of their primals.
template <class F, class... Arguments>
auto linearize(F f, const Arguments&... arguments) {
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
  std::vector<Tensor> outputs = structure::tensors(result);
  if (!where.known() && !outputs.empty()) where = outputs.front().where();
  PushForward derivative(outputs, inputs, where);
  auto push = [derivative = std::move(derivative), result, where,
               primals = structure::with_tensors(std::tuple<Arguments...>{arguments...},
                                                 std::vector<Tensor>(inputs.size()))](
                  const Arguments&... tangents) {
    internal::KeepOperandsScope keep_operands;
    return structure::with_tensors(
        result,
        derivative(structure::matched_tensors(primals, std::tuple<Arguments...>{tangents...},
                                              {"jvp", "primal", "tangent"}, where),
                   where));
  };
  return std::pair(std::move(result), std::move(push));
}

/// Returns f's result at `primals` and its derivative in the direction of `tangents`: forward mode.
/// The elements of a std::tuple are separate arguments; anything else (a tensor, a structure) is
/// the only argument.
///
///     auto [y, dy] = jvp(f, x, dx);
///     auto [z, dz] = jvp(g, std::tuple(x, w), std::tuple(dx, dw));
///
/// @error as linearize
template <class F, class Primals>
auto jvp(F f, const Primals& primals, const Primals& tangents) {
  auto both = std::apply([&](const auto&... each) { return linearize(f, each...); },
                         internal::as_arguments(primals));
  auto tangent = std::apply(both.second, internal::as_arguments(tangents));
  return std::pair(std::move(both.first), std::move(tangent));
}

/// The Hessian of f at `primals` times the vector `tangents`, without computing the Hessian. It is
/// the derivative of the gradient in that direction (forward over reverse; Pearlmutter: Fast Exact
/// Multiplication by the Hessian, 1994). f returns a float of rank 0. The elements of a tuple are
/// separate arguments, as in jvp; the result has the structure of `primals`.
template <class F, class Primals>
Primals hvp(F f, const Primals& primals, const Primals& tangents) {
  if constexpr (internal::IsTuple<Primals>::value)
    return jvp(internal::gradients_of_all<std::tuple_size_v<Primals>>(std::move(f)), primals,
               tangents)
        .second;
  else
    return jvp(grad(std::move(f)), primals, tangents).second;
}

}  // namespace meshard
