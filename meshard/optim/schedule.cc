#include "meshard/optim/schedule.h"

#include <numbers>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::optim {
namespace {

void check_steps(const char* place, std::int64_t steps) {
  if (steps < 1)
    throw_invalid(SourceLocation{}, "[optim.", place, "] a schedule takes 1 step or more, not ",
                  steps);
}

// The fraction of `steps` that has passed, 0 to 1.
Tensor fraction(const Tensor& step, std::int64_t steps) { return minimum(step / steps, 1); }

}  // namespace

Schedule::Schedule(double rate)
    : rate_([rate](const Tensor&) { return full({}, rate, DType::f32); }) {}

Tensor Schedule::operator()(const Tensor& step, SourceLocation place) const {
  CallScope line(place, "in optim::Schedule");
  if (step.rank() != 0)
    throw_invalid(step.where(), "[optim.Schedule] the step must be a tensor of rank 0, not ",
                  step.type());
  return rate_(astype(step, DType::f32));
}

Schedule linear(double first, double last, std::int64_t steps, SourceLocation place) {
  CallScope line(place, "in optim::linear");
  check_steps("linear", steps);
  return Schedule(
      [=](const Tensor& step) { return first + (last - first) * fraction(step, steps); });
}

Schedule cosine(double first, std::int64_t steps, double last, SourceLocation place) {
  CallScope line(place, "in optim::cosine");
  check_steps("cosine", steps);
  return Schedule([=](const Tensor& step) {
    return last + (first - last) / 2 * (1 + cos(std::numbers::pi * fraction(step, steps)));
  });
}

Schedule warm_up(double peak, std::int64_t steps, Schedule then, SourceLocation place) {
  CallScope line(place, "in optim::warm_up");
  check_steps("warm_up", steps);
  auto rising = [=](const Tensor& step) { return peak * ((step + 1) / steps); };
  return joined(Schedule(rising), steps, std::move(then));
}

Schedule joined(Schedule first, std::int64_t steps, Schedule second, SourceLocation place) {
  CallScope line(place, "in optim::joined");
  check_steps("joined", steps);
  return Schedule(
      [=](const Tensor& step) { return where(step < steps, first(step), second(step - steps)); });
}

Schedule piecewise(const std::vector<std::pair<std::int64_t, double>>& rates,
                   SourceLocation place) {
  CallScope line(place, "in optim::piecewise");
  for (std::size_t i = 0; i < rates.size(); ++i) {
    std::int64_t least = i == 0 ? 0 : rates[i - 1].first + 1;
    if (i == 0 ? rates[i].first != 0 : rates[i].first < least)
      throw_invalid(SourceLocation{}, "[optim.piecewise] step ", i, " is ", rates[i].first,
                    i == 0 ? ", not 0" : cat(", which is not after step ", least - 1));
  }
  if (rates.empty())
    throw_invalid(SourceLocation{}, "[optim.piecewise] the list of rates is empty");
  return Schedule([rates](const Tensor& step) {
    Tensor rate = full({}, rates[0].second, DType::f32);
    for (std::size_t i = 1; i < rates.size(); ++i)
      rate = where(step >= rates[i].first, rates[i].second, rate);
    return rate;
  });
}

}  // namespace meshard::optim
