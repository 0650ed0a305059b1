// One fault in one scenario, and its outcome.
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

/// The outcome of a fault.
enum class Outcome {
  kNotHit,    // the scenario made fewer calls
  kAbsorbed,  // the values are right all the same
  kReported,  // a clear Error, all inputs kept, and right values on the next attempt
  kWedged,    // as kReported, but the next attempt needs a new client
  kFailed,
};
inline constexpr int kOutcomes = 5;

struct Report {
  Outcome outcome = Outcome::kFailed;
  std::string entry;
  /// What went wrong, or the error that was reported.
  std::string text;
};

/// What attempts share.
struct Context {
  const Control& control;
  std::string folder;
  /// The results of an attempt without a fault.
  std::vector<float> expected;
};

/// Runs a scenario with a fault, and checks the error or results and the state of the inputs.
Report attempt(const Scenario& scenario, const Fault& fault, const Context& context);

/// Empty if the values are as expected, otherwise the difference.
std::string compare(const std::vector<float>& values, const std::vector<float>& expected);

}  // namespace faults
