// Averages of parameters over steps, for evaluation: exponential (EMA) and equal (SWA).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"
#include "meshard/graph/structure.h"
#include "meshard/optim/parameter_step.h"

namespace meshard::optim {

/// How parameters are averaged. With `decay` d, the average becomes d * average + (1 - d) *
/// parameters (Polyak and Juditsky, 1992, with exponential weights); without, all have the same
/// weight (Izmailov et al.: Averaging Weights Leads to Wider Optima, 2018). The first ones are
/// taken as they are. Of the calls of update(), it uses those with the numbers `start`, `start +
/// every`,
/// ..., counted from 0.
///
/// @code
/// #include "meshard/optim/average.h"
/// optim::Average ema{.decay = 0.75};
/// Tensor w = full({2}, 1.0);
/// optim::AverageState<Tensor> state = optim::init(ema, w);
/// for (double next : {1.0, 3.0}) state = optim::update(ema, full({2}, next), state);
/// optim::averaged(state, w).to_vector<float>();  // 1.5, 1.5
/// @endcode
struct Average {
  std::optional<double> decay = std::nullopt;
  std::int64_t start = 0, every = 1;
};

/// The average, in the structure and the shardings of the parameters; f32 for floats of 16 bits or
/// less.
template <class Params>
struct AverageState {
  Params mean;
  Tensor count;  ///< parameters in the average, i32
  Tensor steps;  ///< calls of update(), i32
  MESHARD_FIELDS(mean, count, steps)
};

namespace internal {
/// @return the new means; replaces `count` and `steps`
std::vector<Tensor> average_step(const Average& options, std::span<const Tensor> parameters,
                                 std::vector<Tensor> means, Tensor& count, Tensor& steps);
void check_average(const Average& options);
/// The means in the dtypes and shardings of the parameters; the parameters if the count is 0.
std::vector<Tensor> like_parameters(std::span<const Tensor> means,
                                    std::span<const Tensor> parameters, const Tensor& count);
}  // namespace internal

/// The state before the first parameters, with the shardings of `layout`.
/// @error invalid argument: a decay outside [0, 1]; `start` below 0, `every` below 1.
template <class Params>
AverageState<Params> init(const Average& average, const Params& params, const Params& layout,
                          SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::init");
  internal::check_average(average);
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<Tensor> places = internal::for_parameters(params, layout, "optim.init", "layout");
  return {structure::with_tensors(params, internal::zeros_for(tensors, places, 1)),
          internal::no_steps(tensors), internal::no_steps(tensors)};
}
/// The same, sharded as the parameters.
template <class Params>
AverageState<Params> init(const Average& average, const Params& params,
                          SourceLocation where = SourceLocation::current()) {
  return init(average, params, params, where);
}

/// The average with the parameters after a step. Call it inside jit.
/// @error invalid argument: parameters of another structure or shapes.
template <class Params>
AverageState<Params> update(const Average& average, const Params& params,
                            const AverageState<Params>& state,
                            SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::update");
  AverageState<Params> after = state;
  std::vector<Tensor> means =
      internal::average_step(average, structure::tensors(params),
                             internal::for_parameters(params, state.mean, "optim.update", "mean"),
                             after.count, after.steps);
  after.mean = structure::with_tensors(params, means);
  return after;
}

/// The average in the dtypes and shardings of `params`, to evaluate a model with; `params`
/// themselves while nothing is in the average.
template <class Params>
Params averaged(const AverageState<Params>& state, const Params& params,
                SourceLocation where = SourceLocation::current()) {
  CallScope line(where, "in optim::averaged");
  std::vector<Tensor> tensors = structure::tensors(params);
  std::vector<Tensor> means =
      internal::for_parameters(params, state.mean, "optim.averaged", "mean");
  return structure::with_tensors(
      params, internal::like_parameters(means, structure::tensors(params), state.count));
}

}  // namespace meshard::optim
