// pure_callback: calls a C++ function of this process from a program.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A function on arrays in host memory, for pure_callback().
using HostFunction = std::function<std::vector<HostArray>(std::span<const HostArray> arguments)>;

/// Calls a C++ function with the values of tensors, and returns its results as tensors. Outside of
/// jit, vmap and manual functions, it is called at once; inside, each time the program runs. JAX
/// calls this jax.pure_callback.
///
/// The function must depend on nothing but its arguments: the compiler may remove or repeat the
/// call, and every device of a program makes it, with the whole arguments, in a thread of its own.
/// Inside a manual function, each device passes its local values. Under vmap it is called once for
/// each member. It has no derivative: use custom_vjp. It must not wait for tensors. An exception
/// becomes the error of the launch.
///
/// The function is kept until the process ends. Make it once, not in each call of a function that
/// is traced again: each call of pure_callback() makes a new program.
/// @code
/// auto as_f64 = [](std::span<const HostArray> x) { return std::vector{x[0].astype(DType::f64)}; };
/// auto f = jit([&](Tensor x) {
///   return pure_callback(as_f64, {x}, {{DType::f64, x.shape()}})[0];
/// });
/// Tensor y = f(ones({3}));
/// @endcode
/// @error invalid argument: no result types. When it is called, an error of the launch: the
/// function returns other types than these. When the program is compiled, unimplemented on devices
/// that cannot call this process, which are all but CPUs.
std::vector<Tensor> pure_callback(HostFunction function, const std::vector<Tensor>& arguments,
                                  const std::vector<TensorType>& results,
                                  SourceLocation where = SourceLocation::current());

}  // namespace meshard

namespace meshard::internal {
/// Calls the function with this number, and checks its results. @error failed precondition if there
/// is none (a program from a text); invalid argument: other results than `types`
std::vector<HostArray> call_host_function(std::int64_t number, std::span<const HostArray> arguments,
                                          std::span<const TensorType> types);
}  // namespace meshard::internal
