// Gradients of a batch that is too large for the devices' memory, part by part.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/structure.h"
#include "meshard/ops/divide.h"

namespace meshard::optim {

namespace internal {
/// Rows i, i + parts, i + 2 parts, ... of each tensor: each device keeps to its own rows.
std::vector<Tensor> part_of(std::span<const Tensor> batch, std::int64_t part, std::int64_t parts);
/// The sums so far and the next ones; undefined before the first.
std::vector<Tensor> added(std::span<const Tensor> sums, std::span<const Tensor> next);
/// `batch`, not before `sums` are computed: so that one part at a time is in memory.
std::vector<Tensor> after(std::span<const Tensor> batch, std::span<const Tensor> sums);
std::vector<Tensor> mean_of(std::span<const Tensor> sums, std::int64_t parts);
}  // namespace internal

/// A function that gives what `f` gives, `std::pair(loss, gradients)` of f(params, batch), as the
/// mean over `parts` parts of the batch that are computed one after the other. `batch` is a
/// structure of tensors whose dimension 0 counts samples. If the loss is a mean over samples, the
/// result is that of the whole batch, up to rounding, with the memory of a part.
///
/// @code
/// auto loss_of = [](Tensor w, Tensor x) { return mean(square(matmul(x, w))); };
/// auto in_parts = optim::accumulated(value_and_grad(loss_of), 4);
/// auto [loss, gradient] = in_parts(ones({8, 2}), ones({16, 8}));
/// gradient.shape();  // [8, 2]
/// @endcode
/// @error invalid argument: a dimension 0 that is no multiple of `parts`.
template <class F>
auto accumulated(F f, std::int64_t parts) {
  return [f = std::move(f), parts]<class Params, class Batch>(const Params& params,
                                                              const Batch& batch) {
    std::vector<Tensor> whole = structure::tensors(batch), sums;
    using Result = std::remove_cvref_t<decltype(f(params, batch))>;
    Result result;
    for (std::int64_t i = 0; i < parts; ++i) {
      std::vector<Tensor> part = internal::part_of(internal::after(whole, sums), i, parts);
      result = f(params, structure::with_tensors(batch, part));
      sums = internal::added(sums, structure::tensors(result));
    }
    return structure::with_tensors(result, internal::mean_of(sums, parts));
  };
}

}  // namespace meshard::optim
