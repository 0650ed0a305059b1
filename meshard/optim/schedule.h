// Learning rate schedules.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::optim {

/// A value: the learning rate of each step. A number is a constant rate. Inside jit the schedule is
/// part of the program, which computes the rate from the step number: one compilation serves all
/// steps.
///
/// @code
/// optim::Schedule rate = optim::warm_up(3e-4, 100, optim::cosine(3e-4, 900, 3e-5));
/// rate(full({}, 50)).item<float>();  // 1.5e-4
/// @endcode
class Schedule {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  Schedule(double rate);  // NOLINT: written `.rate = 1e-3`
  /// `rate` receives the number of steps taken before this one, f32 of rank 0.
  explicit Schedule(Function rate) : rate_(std::move(rate)) {}

  /// The rate, f32 of rank 0, of the step that follows `step` steps.
  /// @error invalid argument if the rank of `step` is not 0.
  Tensor operator()(const Tensor& step, SourceLocation where = SourceLocation::current()) const;

 private:
  Function rate_;
};

/// Linear from `first` at step 0 to `last` at step `steps`, and constant from then on.
/// @error invalid argument if steps is below 1, here and in the functions below.
Schedule linear(double first, double last, std::int64_t steps,
                SourceLocation where = SourceLocation::current());

/// Half a cosine wave from `first` at step 0 to `last` at step `steps`, and constant from then on
/// (Loshchilov and Hutter: SGDR, 2017, without restarts).
Schedule cosine(double first, std::int64_t steps, double last = 0,
                SourceLocation where = SourceLocation::current());

/// Linear from `peak / steps` at step 0, reaching `peak` in the `steps`-th step; then `then`. Step
/// 0 of `then` is step `steps` of the result.
Schedule warm_up(double peak, std::int64_t steps, Schedule then,
                 SourceLocation where = SourceLocation::current());

/// `first` before step `steps`; from then on `second`, whose steps count from 0 again.
Schedule joined(Schedule first, std::int64_t steps, Schedule second,
                SourceLocation where = SourceLocation::current());

/// Piecewise constant: the rate of the last pair (step, rate) whose step has been reached. Example:
/// `piecewise({{0, 1e-3}, {1000, 1e-4}})`.
/// @error invalid argument unless the first step is 0 and the steps are ascending.
Schedule piecewise(const std::vector<std::pair<std::int64_t, double>>& rates,
                   SourceLocation where = SourceLocation::current());

}  // namespace meshard::optim
