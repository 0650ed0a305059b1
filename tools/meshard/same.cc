// meshard same: whether programs are the same computation.
#include "meshard/explain/same.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/runtime/imported_program.h"
#include "tools/meshard/array_figures.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"

namespace meshard::tool {
namespace {

struct SameOptions {
  std::vector<std::string> files;
  CompileSettings compile;
  bool run = false;
  std::optional<double> tolerance;
};

// The results of a file's program for random arguments.
std::vector<HostArray> results_of(const std::string& file) {
  return results_for_random(load_program(file, {}).value());
}

// Runs the programs that are not the first one's computation. @return whether all give its results
bool have_equal_results(const SameReport& report, const SameOptions& options) {
  std::optional<std::vector<HostArray>> expected;
  bool equal = true;
  for (std::size_t i = 1; i < report.programs.size(); ++i) {
    if (!report.programs[i].difference) continue;
    if (!expected) expected = results_of(options.files[0]);
    std::string difference =
        difference_of_results(results_of(options.files[i]), *expected, options.tolerance);
    print_text(cat(options.files[i],
                   difference.empty()
                       ? cat(" gives the results of ", options.files[0], " for random values")
                       : cat(" gives other results for random values: ", difference),
                   "\n"));
    equal = equal && difference.empty();
  }
  return equal;
}

int run_same(const SameOptions& options) {
  std::vector<std::string> modules;
  for (const std::string& file : options.files) modules.push_back(read_file(file));
  std::vector<NamedProgram> programs;
  for (std::size_t i = 0; i < modules.size(); ++i)
    programs.push_back({options.files[i], modules[i]});
  SameReport report = compare_programs(programs, options.compile.compile_options());
  print_text(report.to_string());
  if (report.same()) return 0;
  return options.run && have_equal_results(report, options) ? 0 : 1;
}

}  // namespace

void add_same(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SameOptions>();
  CLI::App* command = app.add_subcommand("same", "Says whether programs are the same computation");
  command->footer(
      "A file is a StableHLO module (text, bytecode, portable artifact) or a program of "
      "jax.export. Names,\nthe order of ops, the names of meshes and axes, and source lines do not "
      "matter. For each program\nthat differs from the first, the first op that does is printed "
      "with both source lines. Nothing is run, unless --run "
      "is given.\nExit codes: 0 if all are the same; 1 if one is not; 2 for an error.\n"
      "Example: meshard same host0.mlir host1.mlir host2.mlir");
  command->add_option("files", options->files, "the programs, at least two; - is standard input")
      ->required()
      ->expected(2, 1 << 20);
  command->add_flag("--run", options->run,
                    "runs the programs that differ, and the first one, with the same random "
                    "values: their results decide");
  command->add_option("--tolerance", options->tolerance,
                      "of --run: |result - first| <= T * (1 + |first|). Default: as `meshard run`");
  options->compile.add_options(*command);
  command->callback([options, &exit_code] {
    exit_code = run_with_exit_code([&] { return run_same(*options); });
  });
}

}  // namespace meshard::tool
