// Helpers for all optimizers: the shardings of a parameter and its state, and the dtype of a step.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure_match.h"
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard::optim::internal {

/// The dtype in which a parameter's step is computed: f32 for floats of 16 bits or less, otherwise
/// its own. @error invalid argument unless the parameter is a float.
DType state_dtype(const Tensor& parameter);

/// Zeros in the shape of each parameter, with the sharding of its `layout`, `copies` times; f32 for
/// floats of 16 bits or less. Created on the devices, by one program.
/// @error invalid argument: dtypes that are not floats; shapes that differ.
std::vector<Tensor> zeros_for(std::span<const Tensor> parameters, std::span<const Tensor> layouts,
                              std::size_t copies);

/// The initial step count, 0: i32, on the devices of `parameters`.
Tensor no_steps(std::span<const Tensor> parameters);

/// `value` with the sharding of `layout`; unchanged if it has none.
Tensor laid_out(const Tensor& value, const Tensor& layout);

/// A parameter and its gradient in the dtype of the step.
struct Prepared {
  Tensor parameter, gradient;
};
/// For an optimizer without state. @error as state_dtype.
Prepared prepared(const Tensor& parameter, const Tensor& gradient);
/// The same, in the sharding of `state`, which was created by zeros_for.
Prepared prepared(const Tensor& parameter, const Tensor& gradient, const Tensor& state);

/// The tensors of `given`, such as gradients or the means of a state, in the order of the
/// parameters at the same paths.
/// @error invalid argument: a path is in one structure only; two shapes differ.
template <class Params>
std::vector<Tensor> for_parameters(const Params& params, const Params& given,
                                   std::string_view function, std::string_view name) {
  return structure::matched_shapes(params, given, {function, "parameter", name},
                                   effective_source({}));
}

/// For each tensor of `params`, the number of leading dimensions that stack layers (nn::Layers).
template <class Params>
std::vector<std::size_t> stacked_dimensions(const Params& params) {
  std::vector<std::size_t> all;
  structure::for_each(params, [&](const auto& leaf, const std::string& path) {
    if constexpr (structure::Leaf<std::remove_cvref_t<decltype(leaf)>>)
      all.push_back(structure::stacked_dimensions(path));
  });
  return all;
}

/// True if weight decay applies: a layer's parameter has at least `least_rank` dimensions.
inline bool decays(const Tensor& parameter, std::size_t stacked, double decay,
                   std::int64_t least_rank) {
  return decay != 0 && parameter.rank() - static_cast<std::int64_t>(stacked) >= least_rank;
}

}  // namespace meshard::optim::internal
