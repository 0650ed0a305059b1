#include "meshard/optim/decay_schedule.h"

#include <cmath>
#include <numbers>

#include "meshard/base/error.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard::optim {
namespace {

void check_schedule_steps(const char* place, std::int64_t steps) {
  if (steps < 1)
    throw_invalid(SourceLocation{}, "[optim.", place, "] a schedule takes 1 step or more, not ",
                  steps);
}

Tensor half_wave(const Tensor& part) { return (1 + cos(std::numbers::pi * part)) / 2; }

// floor(step / steps). A compiler may multiply by 1 / steps, so that 188 / 47 is below 4.
Tensor whole_quotient(const Tensor& step, std::int64_t steps) {
  Tensor number = floor(step / steps);
  number = where(number * steps > step, number - 1, number);
  return where((number + 1) * steps <= step, number + 1, number);
}

// base^n, a whole number. A compiler's power is not exact.
Tensor whole_power(double base, const Tensor& n) { return round(pow(base, n)); }

// The number of the period that begins at or before a step, f32, for periods of steps, steps *
// longer, steps * longer^2, ...
Tensor period_of(const Tensor& step, std::int64_t steps, std::int64_t longer) {
  if (longer == 1) return whole_quotient(step, steps);
  auto factor = static_cast<double>(longer);
  Tensor number = floor(log(1 + step * (factor - 1) / steps) / std::log(factor));
  // The logarithm is rounded, so the number can be off by one next to a restart.
  auto begin = [&](const Tensor& n) { return (whole_power(factor, n) - 1) * steps / (factor - 1); };
  number = where(begin(number) > step, number - 1, number);
  return where(begin(number + 1) <= step, number + 1, number);
}

}  // namespace

Schedule exponential(double first, std::int64_t steps, double factor, ExponentialOptions options,
                     SourceLocation place) {
  CallScope line(place, "in optim::exponential");
  check_schedule_steps("exponential", steps);
  if (!(factor > 0))
    throw_invalid(SourceLocation{}, "[optim.exponential] the factor must be above 0, not ", factor);
  return Schedule([=](const Tensor& step) {
    Tensor part = options.staircase ? whole_quotient(step, steps) : step / steps;
    Tensor rate = first * pow(factor, part);
    if (!options.last) return rate;
    return factor < 1 ? maximum(rate, *options.last) : minimum(rate, *options.last);
  });
}

Schedule inverse_square_root(double first, std::int64_t steps, SourceLocation place) {
  CallScope line(place, "in optim::inverse_square_root");
  check_schedule_steps("inverse_square_root", steps);
  return Schedule([=](const Tensor& step) { return first * rsqrt(1 + step / steps); });
}

Schedule polynomial(double first, double last, double power, std::int64_t steps,
                    SourceLocation place) {
  CallScope line(place, "in optim::polynomial");
  check_schedule_steps("polynomial", steps);
  return Schedule([=](const Tensor& step) {
    Tensor left = 1 - minimum(step / steps, 1);
    return (first - last) * pow(left, power) + last;
  });
}

Schedule cosine_restarts(double first, std::int64_t steps, RestartOptions options,
                         SourceLocation place) {
  CallScope line(place, "in optim::cosine_restarts");
  check_schedule_steps("cosine_restarts", steps);
  if (options.longer < 1)
    throw_invalid(SourceLocation{}, "[optim.cosine_restarts] `longer` must be at least 1, not ",
                  options.longer);
  return Schedule([=](const Tensor& step) {
    Tensor number = period_of(step, steps, options.longer);
    auto factor = static_cast<double>(options.longer);
    Tensor length = whole_power(factor, number) * steps;
    Tensor begin = options.longer == 1 ? number * steps : (length - steps) / (factor - 1);
    Tensor peak = options.lower == 1 ? full({}, first) : first * pow(options.lower, number);
    return options.last + (peak - options.last) * half_wave((step - begin) / length);
  });
}

Schedule interpolated(const std::vector<std::pair<std::int64_t, double>>& points,
                      Interpolation interpolation, SourceLocation place) {
  CallScope line(place, "in optim::interpolated");
  if (points.empty())
    throw_invalid(SourceLocation{}, "[optim.interpolated] the list of points is empty");
  if (points[0].first != 0)
    throw_invalid(SourceLocation{}, "[optim.interpolated] the first step is ", points[0].first,
                  ", not 0");
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].first <= points[i - 1].first)
      throw_invalid(SourceLocation{}, "[optim.interpolated] step ", i, " is ", points[i].first,
                    ", which is not after step ", points[i - 1].first);
  return Schedule([=](const Tensor& step) {
    Tensor rate = full({}, points.back().second, DType::f32);
    for (std::size_t i = points.size() - 1; i-- > 0;) {
      auto [from, first] = points[i];
      auto [to, last] = points[i + 1];
      Tensor part = (step - from) / (to - from);
      Tensor here = interpolation == Interpolation::kCosine
                        ? last + (first - last) * half_wave(part)
                        : first + (last - first) * part;
      rate = where(step < to, here, rate);
    }
    return rate;
  });
}

Schedule one_cycle(double peak, std::int64_t steps, OneCycleOptions options, SourceLocation place) {
  CallScope line(place, "in optim::one_cycle");
  check_schedule_steps("one_cycle", steps);
  auto rise = static_cast<std::int64_t>(options.rise * static_cast<double>(steps));
  if (rise < 1 || rise >= steps || !(options.first_divisor > 0) || !(options.last_divisor > 0))
    throw_invalid(SourceLocation{}, "[optim.one_cycle] the peak must be after 1 of ", steps,
                  " steps and before the last, not after ", rise,
                  ", and both divisors must be above 0, not ", options.first_divisor, " and ",
                  options.last_divisor);
  double first = peak / options.first_divisor;
  return interpolated({{0, first}, {rise, peak}, {steps, first / options.last_divisor}},
                      Interpolation::kCosine);
}

}  // namespace meshard::optim
