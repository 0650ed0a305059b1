// One fault in one scenario, and what came of it.
#pragma once
#include <string>
#include <vector>

#include "tests/faults/scenario.h"
#include "tests/faulty_plugin/control.h"

namespace faults {

/// The control functions of the faulty plugin.
struct Control {
  void (*set)(const Fault*);
  int (*hits)();
  int (*matches)();
  const char* (*hit_entry)();
  int (*calls)();
  const char* (*call_name)(int);
  int (*call_gives_event)(int);
  void (*forget_calls)();
  int (*launches)();
  void (*release_events)();

  /// @error a std::runtime_error if the library cannot be loaded
  static Control load(const std::string& path);
};

/// What came of a fault.
enum class Outcome {
  kNotHit,    // the scenario made fewer calls
  kAbsorbed,  // right values all the same
  kReported,  // a clear Error, all inputs kept, and right values at the next attempt
  kWedged,    // as kReported, but only on a new client
  kFailed,
};
inline constexpr int kOutcomes = 5;

struct Report {
  Outcome outcome = Outcome::kFailed;
  std::string entry;
  /// What went wrong, or the error that was reported.
  std::string text;
};

/// Where attempts find what they need.
struct Context {
  const Control& control;
  std::string folder;
  /// The results of an attempt without a fault.
  std::vector<float> expected;
};

/// Runs a scenario with a fault, judges what the caller saw, and what is left of its inputs.
Report attempt(const Scenario& scenario, const Fault& fault, const Context& context);

/// Empty if the values are the expected ones, else how they differ.
std::string compare(const std::vector<float>& values, const std::vector<float>& expected);

}  // namespace faults
