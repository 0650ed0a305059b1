// meshard explain: what a StableHLO file compiles to for hardware that is not here.
#include "meshard/explain/explain.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "meshard/base/cat.h"
#include "meshard/base/json_writer.h"
#include "meshard/plan/sharding_trial.h"
#include "meshard/report/expect.h"
#include "meshard/report/html.h"
#include "meshard/report/json.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/mesh_steps.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

// Exit codes: the program does not meet the expectations; there is no report.
constexpr int kNotMet = 1, kNoReport = 2;

struct ExplainArguments {
  std::string file, topology, mesh, entry, order = "default", json, html, partitioner, plugin,
                                           cache, measured;
  std::vector<std::string> expect, options;
  std::vector<std::string> links, tries, costs;
  std::string try_mesh;
  std::vector<std::int64_t> device_ids;
  std::int64_t partitions = 0, time_limit = 0, processes = 0;
  std::size_t lines = ExplainOptions().most_lines;
  bool part = false, no_cache = false, must_fit = false, picture = false, text = false,
       quiet = false;
};

// Parses `name=value`: true, false, an integer, or text.
std::pair<std::string, pjrt::CompileOptions::Override> override_in(const std::string& text) {
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorCode::kInvalidArgument, "--option " + text + ": expected NAME=VALUE");
  std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  if (value == "true" || value == "false") return {name, value == "true"};
  std::size_t read = 0;
  try {
    std::int64_t number = std::stoll(value, &read);
    if (read == value.size()) return {name, number};
  } catch (const std::exception&) {
    // Not a number.
  }
  return {name, value};
}

// Parses `process=10GB/s,20us` and `device=40GB/s`.
LinkOptions links_of(const ExplainArguments& arguments) {
  LinkOptions links;
  if (arguments.processes > 0) links.processes = arguments.processes;
  for (const std::string& text : arguments.links) {
    std::size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    if (equals == std::string::npos || (name != "process" && name != "device"))
      throw Error(ErrorCode::kInvalidArgument,
                  "--link " + text +
                      ": expected process=BANDWIDTH or device=BANDWIDTH, and perhaps "
                      "a latency, such as process=10GB/s,20us");
    LinkFigures figures = LinkFigures::parse(text.substr(equals + 1)).value();
    (name == "process" ? links.between_processes : links.between_devices) = figures;
  }
  return links;
}

// A single terminal line that is overwritten.
class Progress {
 public:
  explicit Progress(bool quiet) : shown_(!quiet && ::isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& step) {
    if (!shown_) return;
    std::fprintf(stderr, "\r\033[K%s", step.c_str());
    std::fflush(stderr);
    written_ = true;
  }
  void clear() {
    if (written_) std::fprintf(stderr, "\r\033[K");
    written_ = false;
  }

 private:
  bool shown_, written_ = false;
};

ExplainForOptions options_of(const ExplainArguments& arguments, Progress& progress) {
  ExplainForOptions options;
  if (!arguments.mesh.empty()) {
    Mesh mesh = read_mesh(arguments.mesh, "");
    options.layout.axes.assign(mesh.axes().begin(), mesh.axes().end());
  }
  if (arguments.order == "ids") options.layout.order = DeviceOrder::kIds;
  if (arguments.order == "torus") options.layout.order = DeviceOrder::kTorus;
  options.layout.device_ids = arguments.device_ids;
  options.entry = arguments.entry;
  if (arguments.partitions > 0) options.layout.partitions = arguments.partitions;
  options.layout.part_of_target = arguments.part;
  if (!arguments.partitioner.empty()) options.use_shardy = arguments.partitioner == "shardy";
  for (const std::string& text : arguments.options) options.overrides.insert(override_in(text));
  options.links = links_of(arguments);
  for (const std::string& text : arguments.costs)
    options.costs.push_back(GivenCost::parse(text).value());
  options.measured = arguments.measured;
  options.compile.use_cache = !arguments.no_cache;
  options.compile.cache = arguments.cache;
  options.compile.plugin = arguments.plugin;
  if (arguments.time_limit > 0)
    options.compile.time_limit = std::chrono::seconds(arguments.time_limit);
  options.compile.progress = [&progress](const std::string& step) { progress.show(step); };
  return options;
}

// Where text goes: not between the bytes of a report that is written to standard output.
FILE* text_stream(const ExplainArguments& arguments) {
  return arguments.json == "-" || arguments.html == "-" ? stderr : stdout;
}

// Prints expectations. @return whether all are met
bool check(const ProgramReport& report, const std::vector<Expectations>& expected,
           const ExplainArguments& arguments) {
  const std::string& refusal = report.parts().out_of_memory;
  bool met = refusal.empty();
  if (!met) std::fprintf(stderr, "meshard explain: does not fit: %s\n", refusal.c_str());
  if (arguments.must_fit && !report.fits()) met = false;
  for (const Expectations& one : expected) {
    ExpectationReport checked = check_expectations(report, one);
    std::fprintf(checked.ok() ? text_stream(arguments) : stderr, "%s\n",
                 checked.to_string().c_str());
    met = met && checked.ok();
  }
  return met;
}

std::vector<ShardingTrial> trials_of(const ExplainArguments& arguments) {
  auto invalid = [](std::string message) {
    return Error(ErrorCode::kInvalidArgument, std::move(message));
  };
  std::vector<ShardingTrial> trials;
  for (const std::string& text : arguments.tries)
    trials.push_back(ShardingTrial::parse(text).value());
  if (!arguments.try_mesh.empty()) {
    Mesh mesh = read_mesh(arguments.try_mesh, "");
    if (trials.empty()) trials.emplace_back();
    for (ShardingTrial& trial : trials) trial.axes.assign(mesh.axes().begin(), mesh.axes().end());
  }
  if (!trials.empty() && !arguments.mesh.empty())
    throw invalid("--try changes the module's own mesh: use --try-mesh instead of --mesh");
  if (trials.size() > 1 && !arguments.html.empty())
    throw invalid("--html shows one trial: give one --try");
  return trials;
}

// Compiles the module as it is and with each trial, and shows what changes.
int try_file(const ExplainArguments& arguments, const std::string& text, const Target& target,
             const std::vector<ShardingTrial>& trials, const std::vector<Expectations>& expected) {
  ModuleTemplate module = ModuleTemplate::parse(text, arguments.entry).value();
  std::vector<std::string> changed;  // before the slow compiles, so that errors precede them
  for (const ShardingTrial& trial : trials) changed.push_back(apply(trial, module).value());
  auto compiled = [&](const std::string& one) {
    Progress progress(arguments.quiet);
    ExplainForOptions options = options_of(arguments, progress);
    options.entry.clear();  // the text has its entry
    return explain_module(one, target, options, /*where=*/{});
  };
  ProgramReport before = compiled(std::string(module.module().text()));
  bool is_silent = arguments.quiet || arguments.json == "-" || arguments.html == "-";
  bool met = true;
  std::string json;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    ProgramReport after = compiled(changed[i]);
    ReportDiff found = diff(before, after);
    if (!is_silent)
      print_text(cat("try ", trials[i], "\n", found.to_string(arguments.lines), "\n"));
    append(json, i > 0 ? "," : "");
    append(json, "{\"trial\":");
    append_json_string(json, trials[i].to_string());
    append(json, cat(",\"diff\":", to_json(found), "}"));
    if (!arguments.html.empty()) write_file(arguments.html, to_html(found));
    met = check(after, expected, arguments) && met;
  }
  if (!arguments.json.empty())
    write_file(arguments.json,
               cat("{\"schema\":\"meshard.trials\",\"version\":1,\"trials\":[", json, "]}\n"));
  return met ? 0 : kNotMet;
}

int explain_file(const ExplainArguments& arguments) {
  if (arguments.json == "-" && arguments.html == "-")
    throw Error(ErrorCode::kInvalidArgument,
                "--json - --html -: only one report can be written to standard output");
  std::vector<ShardingTrial> trials = trials_of(arguments);
  std::string module = read_file(arguments.file);
  Target target = Target::parse(arguments.topology).value();
  std::vector<Expectations> expected;  // parsed first, so that errors precede the slow compile
  for (const std::string& text : arguments.expect)
    expected.push_back(
        Expectations::parse(text.starts_with('@') ? read_file(text.substr(1)) : text).value());
  if (!trials.empty()) return try_file(arguments, module, target, trials, expected);
  ProgramReport report = [&] {
    Progress progress(arguments.quiet);  // cleared at the end
    return explain_module(module, target, options_of(arguments, progress), /*where=*/{});
  }();
  if (!arguments.json.empty()) write_file(arguments.json, to_json(report, 1) + "\n");
  if (!arguments.html.empty()) write_file(arguments.html, to_html(report));
  if (!arguments.quiet && (arguments.text || (arguments.json.empty() && arguments.html.empty()))) {
    std::string text =
        report.to_string({.mesh_picture = arguments.picture, .most_lines = arguments.lines});
    if (text_stream(arguments) == stdout)
      print_text(text);
    else
      std::fputs(text.c_str(), stderr);
  }
  return check(report, expected, arguments) ? 0 : kNotMet;
}

void add_target_options(CLI::App& command, ExplainArguments& arguments) {
  command.add_option("--topology", arguments.topology, "v5e:16x16, v5e:4x4*2, h100:4x8, cpu:8")
      ->required();
  command.add_option("--mesh", arguments.mesh,
                     "names and sizes of the axes, data=4,model=4; default: the module's");
  command
      .add_option("--device-order", arguments.order,
                  "default (the module's own, else torus), torus (as in JAX), ids")
      ->check(CLI::IsMember({"default", "torus", "ids"}));
  command
      .add_option("--device-ids", arguments.device_ids,
                  "the device of each position of the mesh, 3,1,0,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes("--device-order");
  command.add_option("--entry", arguments.entry,
                     "the function that runs the program; default: main, or the only public one");
  command.add_option("--partitions", arguments.partitions,
                     "number of devices of the program; default: as the module specifies");
  command.add_flag("--devices", arguments.part,
                   "allow the module to use only the first devices of the topology");
  command
      .add_option("--processes", arguments.processes,
                  "divide the devices into so many processes, in the order of their ids, and show "
                  "which axes and collectives cross them")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--link", arguments.links,
                  "bandwidth and latency of the links between processes or devices: "
                  "process=10GB/s,20us device=40GB/s")
      ->allow_extra_args(false);
  command
      .add_option("--cost", arguments.costs,
                  "operations, bytes of memory and perhaps bytes sent of a custom call, for one "
                  "execution on one device: NAME=2e9,64MiB or NAME=2e9,64MiB,1MiB")
      ->allow_extra_args(false);
  command.add_option("--measured", arguments.measured,
                     "a trace of runs of the program, *.xplane.pb or *.trace.json.gz of "
                     "jax.profiler or XProf, whose times the report shows beside its own");
}

void add_other_options(CLI::App& command, ExplainArguments& arguments) {
  command.add_option("--partitioner", arguments.partitioner, "shardy or gspmd")
      ->check(CLI::IsMember({"shardy", "gspmd"}));
  command.add_option("--option", arguments.options, "a compiler option: NAME=VALUE");
  command
      .add_option("--try", arguments.tries,
                  "other shardings, to see what they change: \"w2: P(data, none); result 0: "
                  "P(data)\". A value is an argument's name (* matches any text) or number, or a "
                  "result's number. May be repeated: each is compared with the module as it is")
      ->allow_extra_args(false);
  command.add_option("--try-mesh", arguments.try_mesh,
                     "other sizes of the axes, with each --try or alone: data=4,model=4");
  command.add_option("--json", arguments.json,
                     "write the report as JSON to this file; - is standard output");
  command.add_option("--html", arguments.html,
                     "write the report as an HTML page to this file or -");
  command.add_option("--lines", arguments.lines, "maximum number of lines per section; 0: all");
  command.add_flag("--text", arguments.text,
                   "print the report as text even if it is also written to a file");
  command.add_flag("--picture", arguments.picture, "draw the mesh");
  command.add_flag("--quiet", arguments.quiet, "print only failed expectations");
  command.add_option("--expect", arguments.expect,
                     "expectations: `1 all-reduce over model; fits`, or @FILE");
  command.add_flag("--must-fit", arguments.must_fit,
                   "fail if the program needs more memory than the device has");
  command.add_option("--time-limit", arguments.time_limit,
                     "time limit for the compiler, in seconds");
  command.add_flag("--no-cache", arguments.no_cache, "compile even if the result is cached");
  command.add_option("--cache", arguments.cache, "the folder of the compile cache");
  command.add_option("--plugin", arguments.plugin, "the plugin file");
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Compile a StableHLO file for absent hardware and report the result.");
  command->footer(
      "Exit codes: 0; 1 if the program does not fit or an expectation fails; 2 if there is no "
      "report.\nExample: meshard explain step.mlir --topology v5e:4x4 --must-fit");
  command
      ->add_option("file", arguments->file,
                   "StableHLO: text, MLIR bytecode, portable artifact, export of JAX; - is "
                   "standard input")
      ->required();
  add_target_options(*command, *arguments);
  add_other_options(*command, *arguments);
  command->callback([arguments, &exit_code] {
    try {
      exit_code = explain_file(*arguments);
    } catch (const Error& error) {
      std::fprintf(stderr, "meshard explain: %s\n", error.what());
      exit_code = kNoReport;
    }
  });
}

}  // namespace meshard::tool
