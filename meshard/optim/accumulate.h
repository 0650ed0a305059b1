// Gradient accumulation, for batches too large for the devices' memory.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/graph/body_function.h"
#include "meshard/graph/call_scope.h"
#include "meshard/graph/structure.h"

namespace meshard::optim {

namespace internal {
/// Slices of each tensor: slice i has the rows i, i + parts, i + 2 parts, ... so that each device
/// keeps its own rows.
std::vector<Tensor> parts_of(std::span<const Tensor> batch, std::int64_t parts);
/// The means of f's results over all slices, computed by a loop.
std::vector<Tensor> mean_over(const std::vector<Tensor>& parts, std::int64_t count,
                              const BodyFunction& f);
}  // namespace internal

/// Wraps `f` so that it processes the batch in `parts` parts, sequentially, and averages the
/// results. f(params, batch) returns `std::pair(loss, gradients)`. `batch` is a structure of
/// tensors whose dimension 0 is the samples. If the loss is a mean over samples, the result is that
/// of the whole batch, up to rounding, with the memory of one part. The parts are processed by a
/// loop, so the size of the program does not depend on their number. Floats of less than 32 bits
/// are summed in f32, and the mean has their dtype. Recording calls f twice.
///
/// @code
/// auto loss_of = [](Tensor w, Tensor x) { return mean(square(matmul(x, w))); };
/// auto in_parts = optim::accumulated(value_and_grad(loss_of), 4);
/// auto [loss, gradient] = in_parts(ones({8, 2}), ones({16, 8}));
/// gradient.shape();  // [8, 2]
/// @endcode
/// @error invalid argument: `parts` does not divide a dimension 0.
template <class F>
auto accumulated(F f, std::int64_t parts) {
  return [f = std::move(f), parts]<class Params, class Batch>(
             const Params& params, const Batch& batch,
             SourceLocation where = SourceLocation::current()) {
    using Result = std::remove_cvref_t<decltype(f(params, batch))>;
    std::optional<Result> result;
    BodyFunction of_part = [&](std::span<const Tensor> part) {
      result = f(params, structure::with_tensors(batch, part));
      return structure::tensors(*result);
    };
    std::vector<Tensor> cut;
    {
      CallScope line(where, "in optim::accumulated");  // not in f, which has lines of its own
      cut = internal::parts_of(structure::tensors(batch), parts);
    }
    std::vector<Tensor> means = internal::mean_over(cut, parts, of_part);
    return structure::with_tensors(std::move(*result), means);
  };
}

}  // namespace meshard::optim
