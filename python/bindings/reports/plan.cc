// plan(): searches for meshes and shardings.
#include "meshard/plan/plan.h"

#include <chrono>

#include "meshard/plan/explicit_shardings.h"
#include "meshard/plan/search.h"
#include "meshard/plan/sharding_trial.h"
#include "meshard/stablehlo/module_as_text.h"
#include "python/bindings/bindings.h"
#include "python/bindings/interpreter/casters.h"
#include "python/bindings/interpreter/lock.h"
#include "python/bindings/interpreter/source_line.h"
#include "python/bindings/mesh/mesh_casters.h"
#include "python/bindings/reports/report_fields.h"
#include "python/bindings/reports/reports.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

/// A value: how a search is done.
struct SearchSettings {
  double time_limit = 0;
  std::size_t most_compiled = 0, jobs = 0;
  std::size_t most_candidates = PlanOptions().most_candidates;
  double margin = 0;
  std::string journal;
  nb::object progress = nb::none();
};

/// A value: a search's result, with what is needed to write the module of a candidate.
struct FoundPlans {
  PlanResult result;
  std::vector<FreeValue> values;
  std::shared_ptr<const ModulePlan> plan;  // null for a search of programs that a function makes
};

/// A value: one candidate of a search.
struct FoundPlan {
  PlannedCandidate candidate;
  std::vector<std::string> names;
  std::shared_ptr<const ModulePlan> plan;
};

PlanOptions options_of(const SearchSettings& settings) {
  PlanOptions options;
  if (settings.time_limit > 0)
    options.time_limit = std::chrono::duration<double>(settings.time_limit);
  options.most_compiled = settings.most_compiled;
  options.jobs = settings.jobs;
  options.most_candidates = settings.most_candidates;
  options.margin = settings.margin;
  options.journal = settings.journal;
  ObjectRef callback = settings.progress.is_none() ? nullptr : share(settings.progress);
  options.progress = [callback](const PlanProgress& progress) {
    Locked locked;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    if (!callback) return;
    nb::handle(callback.get())(
        progress.done, progress.of,
        progress.next ? nb::object(nb::str(progress.next->to_string(progress.names).c_str()))
                      : nb::none(),
        progress.best ? nb::object(nb::str(progress.best->to_string(progress.names).c_str()))
                      : nb::none());
  };
  return options;
}

std::vector<std::string> names_of(const std::vector<FreeValue>& values) {
  std::vector<std::string> names;
  for (const FreeValue& value : values) names.push_back(value.name);
  return names;
}

std::vector<std::string> names_of(const FoundPlans& found) { return names_of(found.values); }

PlanModuleOptions module_options(const ReportOptions& compile, std::vector<std::string> axes,
                                 std::map<std::string, std::int64_t> pinned,
                                 std::vector<std::string> free) {
  if (!compile.device_ids.empty() || !compile.mesh.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "[plan] the mesh and its devices are searched: use `axes` and `pinned`");
  PlanModuleOptions options;
  options.axes = std::move(axes);
  options.pinned = std::move(pinned);
  options.free = std::move(free);
  options.explain = compile.module();
  return options;
}

FoundPlans plan_module(const std::string& module, const Target& target,
                       const ReportOptions& compile, const SearchSettings& settings,
                       std::vector<std::string> axes, std::map<std::string, std::int64_t> pinned,
                       std::vector<std::string> free) {
  CallerLine line;
  PlanModuleOptions options =
      module_options(compile, std::move(axes), std::move(pinned), std::move(free));
  PlanOptions search_options = options_of(settings);
  Unlocked unlocked;
  auto plan =
      std::make_shared<const ModulePlan>(plan_of_module(module, target, options, line.where()));
  PlanResult found = search(plan->problem, search_options, line.where());
  return {std::move(found), plan->problem.values, plan};
}

// The candidates as (axes, specs by name, least memory, communication), and whether these are all.
nb::object list_module(const std::string& module, const Target& target,
                       const ReportOptions& compile, const SearchSettings& settings,
                       std::vector<std::string> axes, std::map<std::string, std::int64_t> pinned,
                       std::vector<std::string> free) {
  CallerLine line;
  PlanModuleOptions options =
      module_options(compile, std::move(axes), std::move(pinned), std::move(free));
  ModulePlan plan = plan_of_module(module, target, options, line.where());
  bool complete = true;
  nb::list found;
  for (PlannedCandidate& one : plan_candidates(plan.problem, options_of(settings), complete))
    found.append(FoundPlan{std::move(one), names_of(plan.problem.values), nullptr});
  return nb::make_tuple(found, complete);
}

// A search whose programs a Python function makes: build(axes, specs) returns a TracedProgram or a
// Report.
FoundPlans plan_programs(nb::object build, const Target& target, std::vector<FreeValue> values,
                         const ReportOptions& compile, const SearchSettings& settings,
                         std::vector<std::string> axes, std::map<std::string, std::int64_t> pinned,
                         const std::string& identity) {
  CallerLine line;
  ObjectRef builder = share(std::move(build));
  auto built = [builder, &target](const PlanCandidate& candidate) {
    UserCode own_lines;
    Mesh mesh = mesh_on_target(candidate.axes, target, DeviceOrder::kTorus).value();
    return nb::object(nb::handle(builder.get())(mesh, candidate.specs));
  };
  PlanProblem problem;
  problem.identity = target.name() + "\n" + identity;
  problem.devices = target.size();
  problem.axes = std::move(axes);
  problem.pinned = std::move(pinned);
  problem.values = std::move(values);
  problem.capacity = device_memory(target);
  problem.estimate = [&](const PlanCandidate& candidate) -> PlanEstimate {
    TracedProgram* traced = nullptr;
    Locked locked;
    try {
      nb::object program = built(candidate);
      if (!nb::try_cast(program, traced) || traced == nullptr) {
        PlanEstimate estimate;
        for (std::size_t i = 0; i < problem.values.size(); ++i)
          estimate.least_memory +=
              shard_bytes(candidate.specs[i], problem.values[i].type, candidate.axes);
        return estimate;
      }
      return internal::estimate_of_program(*traced, target.size());
    } catch (const Error&) {
      return PlanEstimate();  // the same error is the verdict, when the candidate's turn comes
    }
  };
  ExplainForOptions given;
  given.overrides = compile.overrides;
  given.links = compile.links();
  problem.ended = std::make_shared<std::atomic<bool>>(false);
  given.compile = internal::compile_in_search(compile.compile(), problem.ended);
  problem.compile = [&](const PlanCandidate& candidate) -> Result<ProgramReport> {
    TracedProgram traced;
    {
      Locked locked;
      nb::object program = built(candidate);
      const ProgramReport* report = nullptr;
      if (nb::try_cast(program, report) && report) return *report;
      const TracedProgram* made = nullptr;
      if (!nb::try_cast(program, made) || !made)
        throw nb::type_error("the function to plan must return a TracedProgram or a Report");
      traced = *made;
    }
    return explain(target, std::move(traced), given);
  };
  PlanOptions search_options = options_of(settings);
  Unlocked unlocked;
  PlanResult found = search(problem, search_options, line.where());
  return {std::move(found), problem.values, nullptr};
}

// A table for notebooks: the best candidates, and the counts below.
std::string page_of(const FoundPlans& found) {
  auto escaped = [](const std::string& text) {
    std::string out;
    for (char c : text)
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  };
  std::string rows;
  std::size_t shown = std::min<std::size_t>(found.result.ranking.size(), 10);
  for (std::size_t i = 0; i < shown; ++i) {
    const PlannedCandidate& one = found.result.ranking[i];
    append(rows,
           cat("<tr><td>", i + 1, "</td><td><code>", escaped(title_of(one, found.result.names)),
               "</code></td><td>", escaped(verdict_text(one.verdict)), "</td></tr>"));
  }
  return cat("<table><tr><th></th><th>mesh; shardings</th><th></th></tr>", rows, "</table><p>",
             found.result.candidates, " candidates, ", found.result.compiled, " compiled, ",
             found.result.ruled_out, " ruled out by the bytes of their arguments</p>");
}

void bind_candidates(nb::module_& module) {
  nb::class_<FoundPlan> plan(module, "PlannedCandidate",
                             "A mesh and shardings, as plan() found them.");
  add_fields<PlanVerdict>(plan, "PlanVerdict", {}, [](const FoundPlan& p) -> const PlanVerdict& {
    return p.candidate.verdict;
  });
  plan.def_prop_ro(
          "axes", [](const FoundPlan& p) { return axes_dict(p.candidate.candidate.axes); },
          "The mesh axes and their sizes.")
      .def_prop_ro(
          "specs",
          [](const FoundPlan& p) {
            nb::dict specs;
            for (std::size_t i = 0; i < p.candidate.candidate.specs.size(); ++i)
              specs[(i < p.names.size() ? p.names[i] : std::to_string(i)).c_str()] =
                  p.candidate.candidate.specs[i].to_string();
            return specs;
          },
          "The text of the partition spec of each free value: `P(\"data\", none)`.")
      .def_prop_ro(
          "as_given", [](const FoundPlan& p) { return p.candidate.as_given; },
          "True for the program as it was given.")
      .def_prop_ro(
          "estimated_seconds", [](const FoundPlan& p) { return p.candidate.estimate.seconds; },
          "Before compiling: the estimated time of a run; 0 if the hardware's figures are unknown.")
      .def_prop_ro(
          "least_memory", [](const FoundPlan& p) { return p.candidate.estimate.least_memory; },
          "Before compiling: the bytes of the arguments on one device.")
      .def_prop_ro(
          "communication", [](const FoundPlan& p) { return p.candidate.estimate.communication; },
          "Before compiling: the estimated bytes of collectives.")
      .def_prop_ro(
          "report", [](const FoundPlan& p) { return p.candidate.report; },
          "None if an earlier run compiled it, or it is not among the best 16.")
      .def(
          "module_text",
          [](const FoundPlan& p) -> std::optional<std::string> {
            if (!p.plan) return std::nullopt;
            if (p.candidate.as_given) return std::string(p.plan->module.module().text());
            return p.plan->module.with(p.candidate.candidate, p.plan->free);
          },
          "The module with this mesh and these shardings; None if plan() got no module.")
      .def("__str__", [](const FoundPlan& p) { return title_of(p.candidate, p.names); })
      .def("__repr__", [](const FoundPlan& p) {
        return cat("<PlannedCandidate: ", title_of(p.candidate, p.names), ": ",
                   verdict_text(p.candidate.verdict), ">");
      });
}

// A module as it is, and with other shardings.
nb::object try_module(const std::string& text, const Target& target, const ReportOptions& compile,
                      std::vector<std::pair<std::string, PartitionSpec>> changes,
                      std::vector<std::string> texts,
                      std::vector<std::pair<std::string, std::int64_t>> axes) {
  CallerLine line;
  ShardingTrial trial;
  for (auto& [value, spec] : changes) trial.changes.push_back({std::move(value), std::move(spec)});
  try {
    for (const std::string& one : texts)
      for (ShardingTrial::Change& change : ShardingTrial::parse(one).value().changes)
        trial.changes.push_back(std::move(change));
  } catch (const Error& error) {
    throw error.at(line.where());
  }
  for (const auto& [name, size] : axes) trial.axes.push_back({.name = name, .size = size});
  ExplainForOptions options = compile.module();
  auto run = [&] {
    Unlocked unlocked;
    return try_shardings(text, target, trial, options, line.where());
  };
  return nb::cast(run());
}

void bind_trials(nb::module_& module) {
  nb::class_<TriedShardings>(module, "TriedShardings",
                             "A program as it is and with other shardings: try_shardings().")
      .def_ro("before", &TriedShardings::before, "The report on the program as it is.")
      .def_ro("after", &TriedShardings::after, "The report on the changed program.")
      .def_ro("diff", &TriedShardings::diff, "What changed.")
      .def(
          "module_text", [](const TriedShardings& tried) { return tried.module; },
          "The changed module.")
      .def("__str__", [](const TriedShardings& tried) { return tried.diff.to_string(); });
  module.def("try_shardings", try_module, nb::arg("module"), nb::arg("target"), nb::arg("options"),
             nb::arg("changes"), nb::arg("texts"), nb::arg("axes"));
}

// The choices of the compiler for a module, as constraints.
ExplicitShardings make_explicit(const nb::bytes& module, const Target& target,
                                const ReportOptions& compile, const std::string& words,
                                std::int64_t most_compiles) {
  CallerLine line;
  ExplicitShardingsOptions options;
  options.explain = compile.module();
  options.most_compiles = most_compiles;
  for (const auto& [each, name] : EnumNames<ConstraintWords>::kNames)
    if (words == name) options.words = each;
  if (!words.empty() && !options.words)
    throw_invalid(line.where(), "[explicit] words=\"", words, "\": jax, pytorch or meshard");
  std::string text(module.c_str(), module.size());
  Unlocked unlocked;
  return explicit_shardings(text, target, options, line.where());
}

void bind_explicit(nb::module_& module) {
  bind_value<ChosenSharding>(module, "ChosenSharding")
      .def_prop_ro("place", &ChosenSharding::place, comment_of("ChosenSharding.place"));
  bind_value<ExplicitShardings>(module, "ExplicitShardings", "module")
      .def(
          "module_text", [](const ExplicitShardings& found) { return found.module; },
          "The module with the constraints that are offered.")
      .def(
          "to_json",
          [](const ExplicitShardings& found, std::size_t indent) { return to_json(found, indent); },
          nb::arg("indent") = 0, "The list as JSON.");
  module.def("explicit_shardings", make_explicit, nb::arg("module"), nb::arg("target"),
             nb::arg("options"), nb::arg("words"), nb::arg("most_compiles"));
}

}  // namespace

void bind_plan(nb::module_& module) {
  module.def("program_as_text", [](nb::bytes file) {
    return stablehlo::program_as_text({file.c_str(), file.size()}).value();
  });
  bind_trials(module);
  bind_explicit(module);
  bind_candidates(module);
  nb::class_<FreeValue>(module, "FreeValue", "A value whose sharding plan() may choose.")
      .def(
          "__init__",
          [](FreeValue* self, std::string name, Shape shape, DType dtype, PartitionSpec spec) {
            new (self) FreeValue{std::move(name), {dtype, std::move(shape)}, std::move(spec)};
          },
          nb::arg("name"), nb::arg("shape"), nb::arg("dtype"), nb::arg("spec"),
          "Unconstrained dimensions of `spec` are free.")
      .def_ro("name", &FreeValue::name)
      .def_prop_ro("type", [](const FreeValue& v) { return v.type.to_string(); })
      .def_ro("spec", &FreeValue::spec)
      .def("__repr__", [](const FreeValue& v) {
        return cat("<FreeValue: ", v.name, " ", v.type, " ", v.spec, ">");
      });
  nb::class_<SearchSettings>(module, "SearchOptions", "How plan() searches.")
      .def(nb::init<>())
      .def_rw("time_limit", &SearchSettings::time_limit, "In seconds; 0: a day.")
      .def_rw("most_compiled", &SearchSettings::most_compiled, "0: no limit.")
      .def_rw("jobs", &SearchSettings::jobs,
              "Compiles at the same time; 0: one per core, at most 2.")
      .def_rw("most_candidates", &SearchSettings::most_candidates)
      .def_rw("margin", &SearchSettings::margin, "The fraction of memory that must stay free.")
      .def_rw("journal", &SearchSettings::journal, "The file to resume from; empty: none.")
      .def_rw("progress", &SearchSettings::progress, nb::arg().none());
  nb::class_<FoundPlans>(module, "PlanResult", "The result of plan(). str() shows it.")
      .def_prop_ro(
          "ranking",
          [](const FoundPlans& found) {
            nb::list all;
            for (const PlannedCandidate& one : found.result.ranking)
              all.append(FoundPlan{one, names_of(found), found.plan});
            return all;
          },
          "The candidates that were compiled, best first.")
      .def_prop_ro(
          "given",
          [](const FoundPlans& found) -> std::optional<FoundPlan> {
            const PlannedCandidate* own = found.result.given();
            if (!own) return std::nullopt;
            return FoundPlan{*own, names_of(found), found.plan};
          },
          "The program as it was given, with its verdict; None if there is none.")
      .def_prop_ro(
          "given_is_best", [](const FoundPlans& found) { return found.result.given_is_best(); },
          "True if nothing better than the given program was found.")
      .def_prop_ro(
          "front",
          [](const FoundPlans& found) {
            nb::list front;
            for (std::size_t i : found.result.front())
              front.append(FoundPlan{found.result.ranking[i], names_of(found), found.plan});
            return front;
          },
          "The Pareto front of time and memory: the best candidate, then those that need less "
          "memory than all that are faster.")
      .def(
          "to_json",
          [](const FoundPlans& found, std::size_t indent) {
            return to_json(found.result, found.values, indent);
          },
          nb::arg("indent") = 0, "All candidates, as `meshard plan --json` writes them.")
      .def_prop_ro(
          "best",
          [](const FoundPlans& found) -> std::optional<FoundPlan> {
            if (!found.result.anything_fits()) return std::nullopt;
            return FoundPlan{found.result.ranking[0], names_of(found), found.plan};
          },
          "The best candidate; None if nothing fits.")
      .def_prop_ro("anything_fits", [](const FoundPlans& f) { return f.result.anything_fits(); })
      .def_prop_ro(
          "candidates", [](const FoundPlans& f) { return f.result.candidates; },
          "Number of all candidates.")
      .def_prop_ro(
          "repeated", [](const FoundPlans& f) { return f.result.repeated; },
          "The number of candidates that are the same program as another one, but for the names of "
          "axes.")
      .def_prop_ro(
          "ruled_out", [](const FoundPlans& f) { return f.result.ruled_out; },
          "Number of those whose arguments alone do not fit.")
      .def_prop_ro(
          "compiled", [](const FoundPlans& f) { return f.result.compiled; },
          "Number of those compiled in this run.")
      .def_prop_ro(
          "resumed", [](const FoundPlans& f) { return f.result.resumed; },
          "Number of those taken from the journal.")
      .def_prop_ro(
          "exhaustive", [](const FoundPlans& f) { return f.result.exhaustive; },
          "False if combinations were skipped, or a limit ended the search.")
      .def_prop_ro("ended_by", [](const FoundPlans& f) { return f.result.ended_by; })
      .def(
          "to_string",
          [](const FoundPlans& f, std::size_t most) { return f.result.to_string(most); },
          nb::arg("most") = 5, "The text, with at most this many candidates.")
      .def("_repr_html_", page_of)
      .def("__str__", [](const FoundPlans& f) { return f.result.to_string(); })
      .def("__repr__", [](const FoundPlans& f) {
        return cat("<PlanResult: ", f.result.compiled, " of ", f.result.candidates,
                   " candidates compiled>");
      });
  module.def("plan_module", plan_module, nb::arg("module"), nb::arg("target"), nb::arg("compile"),
             nb::arg("search"), nb::arg("axes"), nb::arg("pinned"), nb::arg("free"));
  module.def("plan_list", list_module, nb::arg("module"), nb::arg("target"), nb::arg("compile"),
             nb::arg("search"), nb::arg("axes"), nb::arg("pinned"), nb::arg("free"));
  module.def("plan_programs", plan_programs, nb::arg("build"), nb::arg("target"), nb::arg("values"),
             nb::arg("compile"), nb::arg("search"), nb::arg("axes"), nb::arg("pinned"),
             nb::arg("identity"));
}

}  // namespace meshard::python
