// Gradients of a batch that is too large for the devices' memory, part by part.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body.h"
#include "meshard/graph/structure.h"

namespace meshard::optim {

namespace internal {
/// Rows i, i + parts, i + 2 parts, ... of each tensor as slice i: each device keeps to its own
/// rows.
std::vector<Tensor> parts_of(std::span<const Tensor> batch, std::int64_t parts);
/// The means of what f gives for each slice, by a loop.
std::vector<Tensor> mean_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f);
}  // namespace internal

/// A function that gives what `f` gives, `std::pair(loss, gradients)` of f(params, batch), as the
/// mean over `parts` parts of the batch that are computed one after the other. `batch` is a
/// structure of tensors whose dimension 0 counts samples. If the loss is a mean over samples, the
/// result is that of the whole batch, up to rounding, with the memory of a part. The parts are a
/// loop: the program is that of one, whatever their number. Floats of less than 32 bits are summed
/// in f32, and the mean has their dtype. f is called twice, to record it.
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
    using Result = std::remove_cvref_t<decltype(f(params, batch))>;
    std::optional<Result> result;
    BodyFunction of_part = [&](std::span<const Tensor> part) {
      result = f(params, structure::with_tensors(batch, part));
      return structure::tensors(*result);
    };
    std::vector<Tensor> means =
        internal::mean_over(internal::parts_of(structure::tensors(batch), parts), parts, of_part);
    return structure::with_tensors(std::move(*result), means);
  };
}

}  // namespace meshard::optim
