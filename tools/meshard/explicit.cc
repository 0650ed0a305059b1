// meshard explicit: the shardings that the compiler chose, as constraints.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "meshard/base/cat.h"
#include "meshard/plan/explicit_shardings.h"
#include "meshard/runtime/imported_program.h"
#include "tools/meshard/array_figures.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

struct ExplicitArguments {
  std::string file, topology, entry, words, json, write;
  std::int64_t most_compiles = ExplicitShardingsOptions().most_compiles;
  CompileSettings compile;
  bool part = false, run = false, quiet = false;
  std::optional<double> tolerance;
};

// Runs the program and the constrained one here. @return how their results differ
std::string run_both(const std::string& module, const std::string& constrained,
                     const std::optional<double>& tolerance) {
  ImportedProgram before = load_program_from_bytes(module, {}).value();
  ImportedProgram after = load_program_from_bytes(constrained, {}).value();
  return difference_of_results(results_for_random(after), results_for_random(before), tolerance);
}

int make_explicit(const ExplicitArguments& arguments) {
  if (arguments.json == "-" && arguments.write == "-")
    throw Error(ErrorCode::kInvalidArgument,
                "--json - --write -: only one can be written to standard output");
  std::string module = read_file(arguments.file);
  ExplicitShardingsOptions options;
  options.explain.entry = arguments.entry;
  options.explain.layout.part_of_target = arguments.part;
  options.explain.compile = arguments.compile.compile_options();
  options.most_compiles = arguments.most_compiles;
  for (const auto& [words, name] : EnumNames<ConstraintWords>::kNames)
    if (arguments.words == name) options.words = words;
  ExplicitShardings found =
      explicit_shardings(module, Target::parse(arguments.topology).value(), options, /*where=*/{});
  if (!arguments.json.empty()) write_file(arguments.json, to_json(found, 1) + "\n");
  if (!arguments.write.empty()) write_file(arguments.write, found.module);
  bool is_silent = arguments.quiet || arguments.json == "-" || arguments.write == "-";
  if (!is_silent) print_text(found.to_string());
  if (!arguments.run) return 0;
  std::string difference = run_both(module, found.module, arguments.tolerance);
  if (!is_silent)
    print_text(difference.empty()
                   ? "run with random values, it gives the same results\n"
                   : cat("run with random values, it gives other results: ", difference, "\n"));
  return difference.empty() ? 0 : 1;
}

}  // namespace

void add_explicit(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExplicitArguments>();
  CLI::App* command = app.add_subcommand(
      "explicit", "Writes down the shardings that the compiler chose, as constraints.");
  command->footer(
      "Listed are the choices that do not follow from the shardings of arguments, results and "
      "constraints,\neach with its source line and a constraint. The program with the constraints "
      "is compiled again: those\nthat would change its collectives are not offered.\nExit codes: "
      "0; 1 if the results of --run differ; 2 for an error.\nExample: meshard explicit step.mlir "
      "--topology v5e:4x4 --write explicit.mlir");
  command
      ->add_option("file", arguments->file,
                   "StableHLO: text, bytecode, portable artifact, export of JAX; - is standard "
                   "input")
      ->required();
  command->add_option("--topology", arguments->topology, "v5e:16x16, v5e:4x4*2, h100:4x8, cpu:8")
      ->required();
  command
      ->add_option("--words", arguments->words,
                   "jax, pytorch or meshard; default: the framework that wrote the module")
      ->check(CLI::IsMember({"jax", "pytorch", "meshard"}));
  command->add_option("--write", arguments->write,
                      "write the module with the constraints to this file or -");
  command->add_option("--json", arguments->json, "write the list as JSON to this file or -");
  command->add_flag(
      "--run", arguments->run,
      "runs both programs on the devices of this process with the same random values, "
      "and compares the results");
  command->add_option("--tolerance", arguments->tolerance,
                      "of --run: |result - first| <= T * (1 + |first|). Default: as `meshard run`");
  command
      ->add_option(
          "--most-compiles", arguments->most_compiles,
          "how often the program is compiled at most, to find out which constraints change "
          "its collectives")
      ->check(CLI::PositiveNumber);
  command->add_option("--entry", arguments->entry,
                      "the function that runs the program; default: main, or the only public one");
  command->add_flag("--devices", arguments->part,
                    "allow the module to use only the first devices of the topology");
  command->add_flag("--quiet", arguments->quiet, "print nothing");
  arguments->compile.add_options(*command);
  command->callback([arguments, &exit_code] {
    exit_code = run_with_exit_code([&] { return make_explicit(*arguments); });
  });
}

}  // namespace meshard::tool
