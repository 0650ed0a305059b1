#include "tests/faults/attempt.h"

#include <dlfcn.h>

#include <cmath>
#include <optional>
#include <stdexcept>

namespace faults {
namespace {

using meshard::cat;
using meshard::Error;

// Text on one line, for the output.
std::string line_of(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

bool is_wedged(const std::string& text) { return contains(text, "new client"); }

// Empty if the state of the input is valid after the fault.
std::string check_input(const Run& run, const Run::Input& input, const Fault& fault) {
  try {
    return compare(as_floats(input.tensor.to_host()), as_floats(input.value));
  } catch (const std::exception& error) {
    std::string text = line_of(error.what());
    // A launch that the plugin accepted may have consumed it.
    if (input.donated && run.launches_since(input) > 0 && contains(text, "is gone")) return "";
    // The transfer of this input failed.
    if (fault.kind == kFaultErrorEvent && contains(text, fault.message)) return "";
    return cat("cannot be read: ", text);
  }
}

// Empty if the error has the required parts.
std::string check_error(const std::exception& caught, const Fault& fault) {
  auto* error = dynamic_cast<const Error*>(&caught);
  std::string text = line_of(caught.what());
  if (error == nullptr) return cat("not an Error of meshard: ", text);
  if (fault.kind == kFaultLate) return cat("a late call is an error: ", text);
  if (!contains(text, fault.message)) return cat("the cause is lost: ", text);
  if (!contains(text, "PJRT_")) return cat("the entry is not named: ", text);
  if (error->code() != static_cast<meshard::ErrorCode>(fault.code))
    return cat("the code is lost: ", text);
  if (!error->where().known()) return cat("no line of the program: ", text);
  if (!contains(error->where().file, "scenarios.cc") && !contains(error->where().file, "examples/"))
    return cat("not a line of the program: ", text);
  return "";
}

}  // namespace

Control Control::load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(dlerror());
  Control control{};
  auto find = [&](auto& function, const char* name) {
    void* found = dlsym(library, name);
    if (found == nullptr) throw std::runtime_error(cat(path, " lacks ", name));
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(control.set, "faulty_set");
  find(control.hits, "faulty_hits");
  find(control.matches, "faulty_matches");
  find(control.hit_entry, "faulty_hit_entry");
  find(control.calls, "faulty_calls");
  find(control.call_name, "faulty_call_name");
  find(control.call_gives_event, "faulty_call_gives_event");
  find(control.forget_calls, "faulty_forget_calls");
  find(control.launches, "faulty_launches");
  find(control.release_events, "faulty_release_events");
  return control;
}

std::string compare(const std::vector<float>& values, const std::vector<float>& expected) {
  if (values.size() != expected.size())
    return cat(values.size(), " values instead of ", expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Shards may be summed in any order.
    float allowed = 1e-5f * std::max(1.0f, std::abs(expected[i]));
    if (!(std::abs(values[i] - expected[i]) <= allowed))
      return cat("value ", i, " is ", values[i], " instead of ", expected[i]);
  }
  return "";
}

Report attempt(const Scenario& scenario, const Fault& fault, const Context& context) {
  const Control& control = context.control;
  // Only at the end: partners of a failed device wait until their process ends.
  struct Release {
    const Control& control;
    ~Release() { control.release_events(); }
  } release{control};
  Run run(control.launches, context.folder);
  std::optional<std::string> reported;
  std::string wrong;
  control.set(&fault);
  try {
    scenario.run(run);
  } catch (const std::exception& error) {
    reported = line_of(error.what());
    wrong = check_error(error, fault);
  }
  Report report;
  report.entry = control.hit_entry();
  bool hit = control.hits() > 0;
  control.set(nullptr);
  auto failed = [&](auto... parts) {
    report.outcome = Outcome::kFailed;
    report.text = cat(parts...);
    return report;
  };
  if (!wrong.empty()) return failed(wrong);
  if (!reported)
    if (std::string difference = compare(run.values(), context.expected); !difference.empty())
      return failed("no error, but wrong values: ", difference);
  for (const Run::Input& input : run.inputs())
    if (std::string difference = check_input(run, input, fault); !difference.empty())
      return failed("input ", input.name, ": ", difference, "; after ",
                    reported.value_or("no error"));
  report.text = reported.value_or("");
  report.outcome = reported ? Outcome::kReported : hit ? Outcome::kAbsorbed : Outcome::kNotHit;
  Run again(control.launches, context.folder);
  try {
    scenario.run(again);
  } catch (const std::exception& error) {
    if (!is_wedged(error.what()))
      return failed("the next attempt fails: ", line_of(error.what()), "; after ",
                    reported.value_or("no error"));
    report.outcome = Outcome::kWedged;
    meshard::restart_runtime();
    again = Run(control.launches, context.folder);
    try {
      scenario.run(again);
    } catch (const std::exception& second) {
      return failed("the attempt on a new client fails: ", line_of(second.what()), "; after ",
                    reported.value_or("no error"));
    }
  }
  if (std::string difference = compare(again.values(), context.expected); !difference.empty())
    return failed("wrong values at the next attempt: ", difference, "; after ",
                  reported.value_or("no error"));
  return report;
}

}  // namespace faults
