// NaN checks inside compiled programs.
#pragma once
#include <atomic>

#include "meshard/base/source_location.h"
#include "meshard/lowering/lower.h"

namespace meshard {

/// Turns NaN checks on or off, for all threads. Default: off, or on if MESHARD_CHECK_NANS=1 is set
/// in the environment. JAX calls this jax_debug_nans.
///
/// While they are on, programs are compiled with checks. A call of a jitted function, or the
/// computation of recorded values, waits for its program, and throws an error if a result has a
/// NaN. The error is at the line of the first operation that produced a NaN from operands without
/// one, also inside loops, branches and manual functions, and in the backward pass. Checked
/// programs are slow: every operation is followed by a reduction.
/// @code
/// set_check_nans(true);
/// auto f = jit([](Tensor x) { return sum(log(x - 1)); });
/// try {
///   f(zeros({2}));
/// } catch (const Error& error) {
///   // [check_nans] the first operation that produced a NaN is log, f32[2], made here
/// }
/// set_check_nans(false);
/// @endcode
void set_check_nans(bool on);

namespace internal {
/// Whether NaN checks are on: 1 or 0, or -1 while nothing has read or set it.
extern std::atomic<int> nan_check_setting;
/// Reads MESHARD_CHECK_NANS, unless the setting is known by now. Returns whether checks are on.
bool read_nan_check_setting();
}  // namespace internal

/// Whether NaN checks are on.
inline bool checks_nans() {
  int setting = internal::nan_check_setting.load(std::memory_order_relaxed);
  if (setting < 0) [[unlikely]]
    return internal::read_nan_check_setting();
  return setting == 1;
}

namespace internal {
/// Throws if the program that ran last reported a NaN in a result.
/// @error out of range, at the line of the operation
void throw_found_nan(const LoweredModule& program, SourceLocation where);
}  // namespace internal

}  // namespace meshard
