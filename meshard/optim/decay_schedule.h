// More learning rate schedules: decays, restarts, interpolation. Each begins at step 0; joined()
// and warm_up() put them after others.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/optim/schedule.h"

namespace meshard::optim {

/// Options of exponential().
struct ExponentialOptions {
  /// Only whole multiples of `steps` count, so that the rate falls in stairs.
  bool staircase = false;
  /// Where the rate stops. Default: nowhere.
  std::optional<double> last = std::nullopt;
};
/// `first * factor^(step / steps)`.
/// @error invalid argument: steps below 1, here and in all functions below; a factor that is not
/// above 0.
Schedule exponential(double first, std::int64_t steps, double factor,
                     ExponentialOptions options = {},
                     SourceLocation where = SourceLocation::current());

/// `first / sqrt(1 + step / steps)`. After a warm-up of `steps` steps it is the schedule of Vaswani
/// et al. (Attention Is All You Need, 2017).
Schedule inverse_square_root(double first, std::int64_t steps,
                             SourceLocation where = SourceLocation::current());

/// `(first - last) * (1 - step / steps)^power + last`, and `last` from step `steps` on.
Schedule polynomial(double first, double last, double power, std::int64_t steps,
                    SourceLocation where = SourceLocation::current());

/// Options of cosine_restarts().
struct RestartOptions {
  /// Each period has as many times the steps of the one before. At least 1.
  std::int64_t longer = 1;
  /// Each period begins with as many times the rate of the one before.
  double lower = 1;
  /// The rate at the end of each period.
  double last = 0;
};
/// Half a cosine wave, as cosine(), from `first` in `steps` steps, again and again (Loshchilov and
/// Hutter: SGDR, 2017).
Schedule cosine_restarts(double first, std::int64_t steps, RestartOptions options = {},
                         SourceLocation where = SourceLocation::current());

/// How interpolated() goes from one point to the next.
enum class Interpolation : std::uint8_t { kLinear, kCosine };
/// Through all points (step, rate), and constant after the last one. Example:
/// `interpolated({{0, 0.0}, {100, 1e-3}, {1000, 1e-5}})`.
/// @error invalid argument unless the first step is 0 and the steps are ascending.
Schedule interpolated(const std::vector<std::pair<std::int64_t, double>>& points,
                      Interpolation interpolation = Interpolation::kLinear,
                      SourceLocation where = SourceLocation::current());

/// Options of one_cycle().
struct OneCycleOptions {
  double rise = 0.3;          ///< the fraction of the steps until the peak
  double first_divisor = 25;  ///< the first rate is peak / first_divisor
  double last_divisor = 1e4;  ///< the last rate is the first / last_divisor
};
/// By cosine waves from `peak / first_divisor` to `peak` and down to nearly nothing at step `steps`
/// (Smith and Topin: Super-Convergence, 2018).
Schedule one_cycle(double peak, std::int64_t steps, OneCycleOptions options = {},
                   SourceLocation where = SourceLocation::current());

}  // namespace meshard::optim
