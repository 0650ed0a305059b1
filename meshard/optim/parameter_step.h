// What the steps of all optimizers share: where a parameter and its state lie, and in what type a
// step is computed.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard::optim::internal {

/// The dtype in which a parameter's step is computed: f32 for floats of 16 bits or less, else its
/// own. @error invalid argument unless the parameter is a float.
DType state_dtype(const Tensor& parameter);

/// Zeros in the shape of `parameter`, laid out as `layout` is; f32 for floats of 16 bits or less.
/// Made on the devices. @error invalid argument unless a float, or if the shapes differ.
Tensor zeros_for(const Tensor& parameter, const Tensor& layout);

/// The number of steps taken, 0: i32, on the devices of `parameters`.
Tensor no_steps(std::span<const Tensor> parameters);

/// `value` laid out as `layout` is, if anything is said about that.
Tensor laid_out(const Tensor& value, const Tensor& layout);

/// A parameter and its gradient in the dtype of the step.
struct Prepared {
  Tensor parameter, gradient;
};
/// Of an optimizer without state. @error as state_dtype.
Prepared prepared(const Tensor& parameter, const Tensor& gradient);
/// In the layout of `state` too, which was made by zeros_for.
Prepared prepared(const Tensor& parameter, const Tensor& gradient, const Tensor& state);

/// @error invalid argument: the structures of parameters and gradients have different numbers of
/// tensors, or tensors of different shapes.
void check_gradients(const char* place, std::span<const Tensor> parameters,
                     std::span<const Tensor> gradients);

/// True if the weight decay applies: the parameter has at least `least_rank` dimensions.
inline bool decays(const Tensor& parameter, double decay, std::int64_t least_rank) {
  return decay != 0 && parameter.rank() >= least_rank;
}

}  // namespace meshard::optim::internal
