// The arguments of a function that is to be traced: their tensors, and the function called with
// others in their places.
#pragma once
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/graph/tensor.h"
#include "meshard/trace/jit.h"

namespace meshard::internal {

/// The tensors of the arguments, depth first. A number becomes one.
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

/// f with `parameters` in the places of these tensors; the tensors of what it gives.
/// @pre as many parameters as tensors_of(arguments...)
template <class F, class... Arguments>
std::vector<Tensor> call_with([[maybe_unused]] std::span<const Tensor> parameters, const F& f,
                              const Arguments&... arguments) {
  [[maybe_unused]] std::size_t next = 0;
  // Braces, so that parameters are handed out from the left.
  std::tuple<Traced<Arguments>...> given{replaced(arguments, parameters, next)...};
  return structure::tensors(std::apply(f, given));
}

}  // namespace meshard::internal
