// The programs of the table of quirks: each goes wrong, or is slow, without what meshard does.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "meshard/meshard.h"
#include "meshard/quirks/quirks.h"

namespace meshard::quirk_trials {

using Function = std::function<Tensor(const Tensor&)>;

/// A value: the program of one row. Either `function` or `run`.
struct Trial {
  /// Is jitted, with the numbers 0, 1, 2, ... of `shape` as its argument.
  Function function = {};
  /// What it must return, computed on one device.
  Function expected = {};
  Shape shape = {};
  std::optional<Sharding> sharding = std::nullopt;
  /// The time that it takes says whether the quirk is needed.
  bool is_timed = false;
  /// Returns whether it was right.
  std::function<bool()> run = {};
  /// The quirk hides another one, whose rewrite must be off too for the program to go wrong.
  std::optional<Quirk> also_off = std::nullopt;

  Trial without_too(Quirk other) const {
    Trial both = *this;
    both.also_off = other;
    return both;
  }
};

/// The program in the table.
Trial trial_of(Quirk quirk);

/// Runs the program as the process's MESHARD_QUIRKS says.
/// @error what the program throws
bool is_right(const Trial& trial);
/// The time of one call of a timed program, without compiling.
double seconds_of(const Trial& trial);
/// The text that lowering writes for `function`.
std::string text_of(const Trial& trial, QuirkSet quirks);

}  // namespace meshard::quirk_trials
