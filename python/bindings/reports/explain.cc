// explain(): reports on modules, recorded functions and compiled programs.
#include "meshard/explain/explain.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "meshard/core.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report_of.h"
#include "meshard/explain/same.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/target/compile_for.h"
#include "meshard/trace/trace_function.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/reports/reports.h"
#include "python/bindings/transforms/jit.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

std::vector<MeshAxis> axes_of(const std::vector<std::pair<std::string, std::int64_t>>& named) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : named) axes.push_back({name, size});
  return axes;
}

// Gives recorded arguments the shardings that a call would find: those of marks, or else, unless
// they depend on abstract tensors, those that they get when they are computed.
void settle_shardings(std::vector<Tensor>& arguments, const SourceLocation& where) {
  std::vector<Tensor> pending;
  for (Tensor& tensor : arguments) {
    if (tensor.value()->storage() || leaf_sharding(tensor.value()) || is_abstract(tensor)) continue;
    if (std::optional<Sharding> marked = marked_sharding(tensor.value()))
      tensor = abstract_tensor(tensor.value().type(), std::move(marked), where);
    else
      pending.push_back(tensor);
  }
  if (pending.empty()) return;
  Unlocked unlocked;
  try {
    compute(pending, where);
  } catch (const Error&) {
    // They stay as they are: only their types matter.
  }
}

ProgramReport explain_bytes(nb::bytes bytes, const Target& target, const ReportOptions& options) {
  CallerLine line;
  std::string module(bytes.c_str(), bytes.size());
  ExplainForOptions given = options.module();
  Unlocked unlocked;
  return explain_module(module, target, given, line.where());
}

SameReport compare(const std::vector<std::pair<std::string, nb::bytes>>& programs,
                   const ReportOptions& options) {
  CallerLine line;
  std::vector<NamedProgram> named;
  for (const auto& [name, module] : programs)
    named.push_back({name, {module.c_str(), module.size()}});
  CompileForOptions given = options.compile();
  Unlocked unlocked;
  return compare_programs(named, given, line.where());
}

// The report as an object that knows the recorded program.
nb::object with_program(ProgramReport report, const TracedProgram& traced) {
  nb::object made = nb::cast(std::move(report));
  made.attr("_program") = nb::cast(traced);
  return made;
}

nb::object explain_for_target(const TracedProgram& traced, const Target& target,
                              const ReportOptions& options) {
  ExplainForOptions given;
  given.overrides = options.overrides;
  given.links = options.links();
  given.costs = options.given_costs();
  given.measured = options.measured;
  given.compile = options.compile();
  auto run = [&] {
    Unlocked unlocked;
    return internal::explain_traced(target, traced, given);
  };
  return with_program(run(), traced);
}

nb::object explain_here(const TracedProgram& traced, const ReportOptions& options) {
  LinkOptions links = options.links();
  auto run = [&] {
    Unlocked unlocked;
    auto compiled = evaluator(traced.where).compile(traced.program, traced.where);
    return explain(*compiled, links, traced.where);
  };
  return with_program(run(), traced);
}

nb::object explain_newest(const PythonJit& jit, const ReportOptions& options) {
  CallerLine line;
  LinkOptions links = options.links();
  TracedProgram traced;
  auto run = [&] {
    Unlocked unlocked;
    auto programs = jit.programs().programs();
    if (programs.empty())
      throw Error(ErrorCode::kFailedPrecondition,
                  "[explain] the function has no compiled program yet: call it first, or pass its "
                  "arguments to explain()",
                  line.where());
    traced = {programs.back()->source(), line.where()};
    return explain(*programs.back(), links, line.where());
  };
  ProgramReport report = run();
  return with_program(std::move(report), traced);
}

void bind_options(nb::module_& module) {
  nb::class_<ReportOptions>(module, "ExplainOptions",
                            "How a program is compiled for explain(), plan() and expect().")
      .def(nb::init<>())
      .def_rw("mesh", &ReportOptions::mesh, "Axes and sizes that replace the module's own.")
      .def_rw("device_order", &ReportOptions::device_order, "`default`, `torus` or `ids`.")
      .def_rw("device_ids", &ReportOptions::device_ids, "The device of each partition.")
      .def_rw("partitions", &ReportOptions::partitions, nb::arg().none(), "Number of devices.")
      .def_rw("part_of_target", &ReportOptions::part_of_target,
              "Allows the program to use only the first devices of the target.")
      .def_rw("entry", &ReportOptions::entry, "The function that runs the program, or empty.")
      .def_rw("partitioner", &ReportOptions::partitioner, "`shardy`, `gspmd`, or empty.")
      .def_rw("overrides", &ReportOptions::overrides, "Compiler options by name.")
      .def_rw("processes", &ReportOptions::processes, nb::arg().none(),
              "Divides the devices into so many processes.")
      .def_rw("process_link", &ReportOptions::process_link, "`10GB/s,20us`, or empty.")
      .def_rw("device_link", &ReportOptions::device_link, "`40GB/s`, or empty.")
      .def_rw("costs", &ReportOptions::costs, "`NAME=2e9,64MiB`: costs of custom calls.")
      .def_rw("measured", &ReportOptions::measured, "The path of a trace, or empty.")
      .def_rw("time_limit", &ReportOptions::time_limit, "Of the compiler, in seconds; 0: none.")
      .def_rw("cache", &ReportOptions::cache, "The folder of the compile cache; empty: default.")
      .def_rw("use_cache", &ReportOptions::use_cache)
      .def_rw("plugin", &ReportOptions::plugin, "The plugin file; empty: searched for.")
      .def_rw("progress", &ReportOptions::progress, nb::arg().none(),
              "Called with each step of a compile, or None.");
}

}  // namespace

LinkOptions ReportOptions::links() const {
  LinkOptions links;
  links.processes = processes;
  if (!process_link.empty()) links.between_processes = LinkFigures::parse(process_link).value();
  if (!device_link.empty()) links.between_devices = LinkFigures::parse(device_link).value();
  return links;
}

std::vector<GivenCost> ReportOptions::given_costs() const {
  std::vector<GivenCost> given;
  for (const std::string& text : costs) given.push_back(GivenCost::parse(text).value());
  return given;
}

CompileForOptions ReportOptions::compile() const {
  CompileForOptions options;
  if (time_limit > 0)
    options.time_limit = std::chrono::seconds(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(time_limit, 1e9) + 0.999)));
  options.cache = cache;
  options.use_cache = use_cache;
  options.plugin = plugin;
  ObjectRef callback = progress.is_none() ? nullptr : share(progress);
  options.progress = [callback](const std::string& step) {
    Locked locked;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    if (callback) nb::handle(callback.get())(step);
  };
  return options;
}

ExplainForOptions ReportOptions::module() const {
  auto invalid = [](std::string message) {
    throw Error(ErrorCode::kInvalidArgument, std::move(message));
  };
  ExplainForOptions options;
  options.layout.axes = axes_of(mesh);
  if (device_order == "torus")
    options.layout.order = DeviceOrder::kTorus;
  else if (device_order == "ids")
    options.layout.order = DeviceOrder::kIds;
  else if (device_order != "default")
    invalid(cat("[explain] device_order \"", device_order, "\": must be default, torus or ids"));
  options.layout.device_ids = device_ids;
  options.layout.partitions = partitions;
  options.layout.part_of_target = part_of_target;
  options.entry = entry;
  if (!partitioner.empty() && partitioner != "shardy" && partitioner != "gspmd")
    invalid(cat("[explain] partitioner \"", partitioner, "\": must be shardy or gspmd"));
  if (!partitioner.empty()) options.use_shardy = partitioner == "shardy";
  options.overrides = overrides;
  options.links = links();
  options.costs = given_costs();
  options.measured = measured;
  options.compile = compile();
  return options;
}

TracedProgram trace_python(const PythonJit& jit, nb::tuple args, nb::dict kwargs) {
  CallerLine line;
  std::vector<std::uint64_t> form;
  CallLeaves leaves;
  flatten_call(args.ptr(), kwargs.size() ? kwargs.ptr() : nullptr, jit.statics(), jit.names(), form,
               leaves);
  CallPaths paths = call_paths(form, jit.names());
  std::vector<Tensor> tensors(leaves.tensors.begin(), leaves.tensors.end());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined())
      throw Error(ErrorCode::kInvalidArgument, cat("[explain] ", paths.tensors[i], " has no value"),
                  line.where());
  settle_shardings(tensors, line.where());
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  auto tracer = [&](std::span<const Tensor> parameters) {
    return jit.recorded(form, parameters, leaves);
  };
  TracedProgram traced;
  traced.where = line.where();
  const JitOptions& options = jit.programs().options();
  traced.program.name = options.name;
  {
    Unlocked unlocked;
    traced.program.graph = internal::trace_function(pointers, tracer, line.where());
  }
  if (pointers.empty() && traced.program.graph.results().empty())
    throw Error(ErrorCode::kInvalidArgument,
                "[explain] there is no tensor of meshard among the arguments and results of the "
                "function: there is nothing to explain. A program of PyTorch is explained as a "
                "torch.export.ExportedProgram",
                line.where());
  traced.program.donated = internal::donated_parameters(options.donate, paths.leaves, line.where());
  traced.program.parameter_names = std::move(paths.tensors);
  return traced;
}

void bind_explain(nb::module_& module) {
  bind_options(module);
  nb::class_<TracedProgram>(module, "TracedProgram",
                            "A function, recorded for some arguments and not compiled.")
      .def_prop_ro("name", [](const TracedProgram& t) { return t.program.name; })
      .def_prop_ro("parameter_names",
                   [](const TracedProgram& t) { return t.program.parameter_names; })
      .def("module_text", internal::module_text_of,
           "The StableHLO module, with the parameters' names and the lines of Python as locations.")
      .def("__repr__", [](const TracedProgram& t) {
        return cat("<TracedProgram: ", t.program.name, ", ", t.program.graph.nodes().size(),
                   " ops>");
      });
  module.def("trace_program", trace_python, nb::arg("function"), nb::arg("args"),
             nb::arg("kwargs"));
  module.def("explain_module", explain_bytes, nb::arg("module"), nb::arg("target"),
             nb::arg("options"));
  module.def("compare_programs", compare, nb::arg("programs"), nb::arg("options"));
  module.def("explain_traced", explain_for_target, nb::arg("traced"), nb::arg("target"),
             nb::arg("options"));
  module.def("explain_here", explain_here, nb::arg("traced"), nb::arg("options"));
  module.def("explain_newest", explain_newest, nb::arg("function"), nb::arg("options"));
}

}  // namespace meshard::python
