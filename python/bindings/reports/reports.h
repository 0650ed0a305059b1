// The parts of reports, plans and their options that several files of the bindings need.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/explain/explain.h"
#include "meshard/explain/report.h"
#include "meshard/report/diff.h"
#include "python/bindings/interpreter/release_later.h"

namespace meshard::python {

class PythonJit;

/// A value: how a program is compiled and reported on. The Python class ExplainOptions, which the
/// package fills from keyword arguments.
struct ReportOptions {
  /// Axes that replace the module's own, with their sizes.
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  std::string device_order = "default";
  /// The device of each partition, in order. Empty: by `device_order`.
  std::vector<std::int64_t> device_ids;
  std::optional<std::int64_t> partitions;
  bool part_of_target = false;
  /// The function that runs the program; empty: `main`, or the only public one.
  std::string entry;
  /// `shardy`, `gspmd`, or empty.
  std::string partitioner;
  std::map<std::string, pjrt::CompileOptions::Override> overrides;
  std::optional<std::int64_t> processes;
  std::string process_link, device_link;
  /// `NAME=2e9,64MiB`: costs of custom calls.
  std::vector<std::string> costs;
  /// The path of a trace; empty: none.
  std::string measured;
  double time_limit = 0;
  std::string cache, plugin;
  bool use_cache = true;
  nanobind::object progress = nanobind::none();

  /// @error invalid argument: an unknown order or partitioner, an invalid link
  LinkOptions links() const;
  /// @error invalid argument: an invalid cost
  std::vector<GivenCost> given_costs() const;
  /// The callback of the result takes the interpreter's lock, ends the compile on Ctrl-C, and
  /// passes on what the Python callback raises. @pre the lock is held
  CompileForOptions compile() const;
  /// Everything but `device_ids`. @error as links() @pre the lock is held
  ExplainForOptions module() const;
};

/// A value: a collective, why it is there, and how to avoid it. The Python class Collective.
struct ExplainedCollective : Collective {
  ExplainedCollective(Collective one, std::string why = {}, std::string instead = {})
      : Collective(std::move(one)), reason(std::move(why)), suggestion(std::move(instead)) {}
  std::string reason, suggestion;
  /// The instructions that implement it; one for a collective instruction.
  std::vector<std::string> instructions = {instruction};
};

/// The text of `axes` as a tuple of Python: a name, or the notation of a sub-axis.
nanobind::object axes_tuple(const AxisList& axes);

/// The sizes of the axes by their names, in order.
nanobind::dict axes_dict(const std::vector<MeshAxis>& axes);

/// A JSON text as the objects of Python. @pre the lock is held
nanobind::object json_object(const std::string& text);

/// A self-contained page, inside an iframe for a notebook.
std::string iframe_of(const std::string& page, int height);

/// A jitted function of Python, recorded for arguments. Nothing is compiled.
/// @pre the lock is held @error what the function raises; invalid argument: a tensor without a
/// value
TracedProgram trace_python(const PythonJit& jit, nanobind::tuple args, nanobind::dict kwargs);

void bind_report_values(nanobind::module_& module);
void bind_explain(nanobind::module_& module);
void bind_expectations(nanobind::module_& module);
void bind_predictions(nanobind::module_& module);
void bind_targets(nanobind::module_& module);

}  // namespace meshard::python
