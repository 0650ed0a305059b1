// meshard plan: finds a mesh and shardings for a program on a target.
#include "meshard/plan/plan.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "meshard/base/file_cache.h"
#include "meshard/base/fingerprint.h"
#include "meshard/explain/byte_text.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/plan/search.h"
#include "meshard/report/diff_text.h"
#include "meshard/report/expect.h"
#include "meshard/report/html.h"
#include "meshard/report/json.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/mesh_steps.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

struct PlanArguments {
  std::string file, entry, axes, pin, margin, journal, json, html, best;
  std::vector<std::string> free;
  double time_limit = 0;
  std::size_t most = 0, candidates = 20000, show = 3, jobs = 0;
  bool fresh = false, list = false, quiet = false;
  ReportSource source;
};

// Where text goes: not into a module that is written to standard output.
FILE* text_stream(const PlanArguments& arguments) {
  return arguments.best == "-" ? stderr : stdout;
}

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size() && !list.empty();) {
    std::size_t end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::string shortened(std::string text) {
  constexpr std::size_t kMost = 100;
  if (text.size() > kMost) text = text.substr(0, kMost - 3) + "...";
  return text;
}

std::string summary(const PlanVerdict& verdict) {
  std::string text =
      cat(byte_text(verdict.memory), ", ", byte_text(verdict.collective_bytes), " in collectives");
  if (verdict.seconds > 0) append(text, cat(", ", seconds_text(verdict.seconds)));
  return text;
}

// Overwrites one line on a terminal; otherwise prints a line for each candidate.
void show_progress(const PlanProgress& progress) {
  bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::string line = cat(progress.done, " of ", progress.of);
  if (progress.best_verdict)
    append(line, cat(", best so far ", shortened(progress.best->to_string(progress.names)), ": ",
                     summary(*progress.best_verdict)));
  if (progress.next)
    append(line, cat(", now ", shortened(progress.next->to_string(progress.names))));
  std::fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", line.c_str());
  if (terminal && !progress.next) std::fprintf(stderr, "\n");
}

// The journal in the cache folder: one file for each module and set of free choices.
std::string journal_path(const PlanArguments& arguments, const PlanProblem& problem) {
  if (!arguments.journal.empty()) return arguments.journal;
  std::string folder = cache_folder();
  if (folder.empty()) return "";
  // The number is that of the journal's format.
  std::string key = cat("3\n", problem.identity, "\n", join(problem.axes, ","), "\n", arguments.pin,
                        "\n", arguments.margin);
  for (const FreeValue& value : problem.values)
    append(key, cat("\n", value.name, value.type, value.spec));
  std::error_code unwritable;
  std::filesystem::create_directories(folder + "/plans", unwritable);
  if (unwritable || ::access((folder + "/plans").c_str(), W_OK) != 0) return "";
  check_file_trust(folder + "/plans").value();
  return cat(folder, "/plans/", fingerprint(key), ".journal");
}

PlanModuleOptions options_of(const PlanArguments& arguments) {
  PlanModuleOptions options;
  options.axes = names_in(arguments.axes);
  if (!arguments.pin.empty()) {
    Mesh pinned = read_mesh(arguments.pin, "");
    for (const MeshAxis& axis : pinned.axes()) options.pinned[axis.name] = axis.size;
  }
  options.free = arguments.free;
  options.explain.entry = arguments.entry;
  options.explain.compile = arguments.source.compile_options();
  options.search.most_compiled = arguments.most;
  options.search.most_candidates = arguments.candidates;
  options.search.jobs = arguments.jobs;
  if (!arguments.margin.empty()) options.search.margin = parse_margin(arguments.margin).value();
  if (arguments.time_limit > 0)
    options.search.time_limit = std::chrono::duration<double>(arguments.time_limit);
  if (!arguments.quiet) options.search.progress = show_progress;
  return options;
}

// Programs that an earlier run compiled come from the compile cache.
void write_reports(const PlanArguments& arguments, const ModulePlan& plan, PlanResult& found) {
  for (const std::string& folder : {arguments.json, arguments.html})
    if (!folder.empty()) std::filesystem::create_directories(folder);
  if (!arguments.json.empty())
    write_file(arguments.json + "/plan.json", to_json(found, plan.problem.values, 1) + "\n");
  for (std::size_t i = 0; i < found.ranking.size() && i < arguments.show; ++i) {
    PlannedCandidate& one = found.ranking[i];
    if (one.verdict.outcome == PlanOutcome::kRefused) continue;
    if (!one.report) {
      Result<ProgramReport> again =
          one.as_given ? plan.problem.compile_given() : plan.problem.compile(one.candidate);
      if (!again.ok()) continue;
      one.report = *std::move(again);
    }
    std::string name = cat("/plan-", i + 1);
    if (!arguments.json.empty())
      write_file(arguments.json + name + ".json", to_json(*one.report, 1) + "\n");
    if (!arguments.html.empty()) write_file(arguments.html + name + ".html", to_html(*one.report));
    if (i == 0)
      std::fprintf(text_stream(arguments), "\nthe best:\n%s", one.report->to_string().c_str());
  }
}

std::string module_text(const ModulePlan& plan, const PlannedCandidate& planned) {
  return planned.as_given ? std::string(plan.module.module().text())
                          : plan.module.with(planned.candidate, plan.free);
}

int list_candidates(const ModulePlan& plan, const PlanOptions& options) {
  bool complete = true;
  std::vector<std::string> names;
  for (const FreeValue& value : plan.problem.values) names.push_back(value.name);
  for (const PlannedCandidate& one : plan_candidates(plan.problem, options, complete))
    std::printf(
        "%s\t%s of arguments, %s of communication%s by estimate\n",
        one.candidate.to_string(names).c_str(),
        byte_text(static_cast<std::int64_t>(one.estimate.least_memory)).c_str(),
        byte_text(static_cast<std::int64_t>(one.estimate.communication)).c_str(),
        one.estimate.seconds > 0 ? cat(", ", seconds_text(one.estimate.seconds)).c_str() : "");
  if (!complete) std::printf("the list is incomplete: there are more combinations\n");
  return 0;
}

int run_plan(const PlanArguments& arguments) {
  Target target = Target::parse(arguments.source.topology).value();
  PlanModuleOptions options = options_of(arguments);
  ModulePlan plan = plan_of_module(read_file(arguments.file), target, options, /*where=*/{});
  if (arguments.list) return list_candidates(plan, options.search);
  options.search.journal = journal_path(arguments, plan.problem);
  if (arguments.fresh && !options.search.journal.empty())
    std::filesystem::remove(options.search.journal);
  FILE* out = text_stream(arguments);
  std::fprintf(out, "free arguments: %zu groups, in a module of %zu arguments\n",
               plan.free.values.size(), plan.module.arguments().size());
  for (std::size_t v = 0; v < plan.free.values.size(); ++v)
    std::fprintf(out, "  %s %s%s\n", plan.free.values[v].name.c_str(),
                 plan.free.values[v].type.to_string().c_str(),
                 plan.free.arguments[v].size() > 1
                     ? cat(" and ", plan.free.arguments[v].size() - 1, " like it").c_str()
                     : "");
  PlanResult found = search(plan.problem, options.search, /*where=*/{});
  std::fputs(found.to_string(arguments.show).c_str(), out);
  write_reports(arguments, plan, found);
  if (!arguments.best.empty() && found.anything_fits())
    write_file(arguments.best, module_text(plan, found.ranking[0]));
  return found.anything_fits() ? 0 : 1;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Searches meshes and shardings of a program for those that fit and are fastest");
  command->footer(
      "Tries every mesh of the topology's devices over the axes, and for every free argument "
      "every\n"
      "spec that divides it. The search is free to choose the open dimensions ({?}) of argument\n"
      "shardings, and the shardings of the arguments that --free names. The file as it is is\n"
      "compiled first, then the most promising candidates and the neighbors of the best one. An\n"
      "interrupted search resumes where it stopped. Exit codes:\n"
      "0; 1 if nothing fits; 2 for an error.\nExample: meshard plan step.mlir --topology v5e:4x4 "
      "--free \"*['w1']\" --time-limit "
      "600");
  command
      ->add_option("file", arguments->file,
                   "StableHLO text with Shardy shardings; - is standard input")
      ->required();
  arguments->source.add_options(*command);
  command->get_option("--topology")->required();
  command->remove_option(command->get_option("--mesh"));
  command->add_option("--entry", arguments->entry,
                      "the function that runs the program; default: main, or the only public one");
  command->add_option("--axes", arguments->axes,
                      "the mesh axes: data,model; default: the module's");
  command->add_option("--pin", arguments->pin, "axes with a fixed size: data=4");
  command->add_option(
      "--free", arguments->free,
      "an argument whose sharding is searched: its name (* matches any text) or number");
  command->add_option("--time-limit", arguments->time_limit,
                      "time limit in seconds; a compile in progress is completed");
  command->add_option("--most", arguments->most, "maximum number of candidates to compile");
  command->add_option("--jobs", arguments->jobs,
                      "number of compiles at the same time; default: one per core, at most 2");
  command->add_option("--candidates", arguments->candidates,
                      "consider all combinations if there are at most this many");
  command->add_option("--margin", arguments->margin, "memory that must stay free: 10%");
  command->add_option("--show", arguments->show, "number of best candidates to print and to write");
  command->add_option("--journal", arguments->journal,
                      "the file from which a search resumes; default: one in the cache folder");
  command->add_flag("--fresh", arguments->fresh, "start a new search");
  command->add_flag("--list", arguments->list, "print the candidates, compile nothing");
  command->add_flag("--quiet", arguments->quiet, "do not show progress");
  command->add_option(
      "--json", arguments->json,
      "a folder for the reports of the best candidates, and for plan.json with all");
  command->add_option("--html", arguments->html, "a folder for the pages of the best candidates");
  command->add_option("--best", arguments->best,
                      "write the best candidate's module to this file; - is standard output, and "
                      "the text then goes to "
                      "standard error");
  command->callback([arguments, &exit_code] {
    exit_code = run_with_exit_code([&] { return run_plan(*arguments); });
  });
}

}  // namespace meshard::tool
