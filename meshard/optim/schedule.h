// Learning rates that depend on the step.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::optim {

/// A value: the learning rate of each step. A number is a constant one. Inside jit the schedule is
/// part of the program, which computes the rate of its own step: one compile for all steps.
///
/// @code
/// optim::Schedule rate = optim::warm_up(3e-4, 100, optim::cosine(3e-4, 900, 3e-5));
/// rate(full({}, 50)).item<float>();  // 1.5e-4
/// @endcode
class Schedule {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  Schedule(double rate);  // NOLINT: written `.rate = 1e-3`
  /// `rate` is given the number of steps taken before this one, f32 of rank 0.
  explicit Schedule(Function rate) : rate_(std::move(rate)) {}

  /// The rate, f32 of rank 0, of the step before which `step` steps were taken.
  /// @error invalid argument if `step` has another rank than 0.
  Tensor operator()(const Tensor& step) const;

 private:
  Function rate_;
};

/// From `first` at step 0 in a straight line to `last` at step `steps`, which stays.
/// @error invalid argument if steps is below 1; so do all below.
Schedule linear(double first, double last, std::int64_t steps);

/// Half a cosine wave from `first` at step 0 to `last` at step `steps`, which stays (Loshchilov and
/// Hutter: SGDR, 2017, without restarts).
Schedule cosine(double first, std::int64_t steps, double last = 0);

/// From `peak / steps` at step 0 in a straight line, so that the `steps`-th step has `peak`; from
/// then on `then`, whose own step 0 is this step `steps`.
Schedule warm_up(double peak, std::int64_t steps, Schedule then);

/// `first` before step `steps`, from then on `second`, counting from 0 again.
Schedule joined(Schedule first, std::int64_t steps, Schedule second);

/// The rate of the last pair (step, rate) whose step has been reached: `piecewise({{0, 1e-3},
/// {1000, 1e-4}})`.
/// @error invalid argument unless the first step is 0 and they ascend.
Schedule piecewise(const std::vector<std::pair<std::int64_t, double>>& rates);

}  // namespace meshard::optim
