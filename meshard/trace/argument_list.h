// Tensors of a function's arguments, and calls of the function with these tensors replaced.
#pragma once
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

/// The tensors of the arguments, depth first. A number becomes a tensor.
template <class... Arguments>
std::vector<Tensor> tensors_of(const Arguments&... arguments) {
  std::vector<Tensor> flat;
  [[maybe_unused]] std::size_t position = 0;
  auto collect = [&](const auto& argument) {
    using T = std::remove_cvref_t<decltype(argument)>;
    if constexpr (std::is_arithmetic_v<T>) {
      flat.push_back(number_argument(Scalar(argument), position, {}));
    } else {
      for (const Tensor& tensor : structure::tensors(argument)) flat.push_back(tensor);
    }
    ++position;
  };
  (collect(arguments), ...);
  return flat;
}

/// Calls f with `parameters` in place of the arguments' tensors. Returns the tensors of its result.
/// @pre as many parameters as tensors_of(arguments...)
template <class F, class... Arguments>
std::vector<Tensor> call_with([[maybe_unused]] std::span<const Tensor> parameters, const F& f,
                              const Arguments&... arguments) {
  [[maybe_unused]] std::size_t next = 0;
  // Braces evaluate the elements from left to right.
  std::tuple<Traced<Arguments>...> given{replaced(arguments, parameters, next)...};
  return structure::tensors(std::apply(f, given));
}

}  // namespace meshard::internal
