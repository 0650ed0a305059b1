// meshard expect: checks whether a program does what its author intended.
#include "meshard/report/expect.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"

namespace meshard::tool {
namespace {

struct ExpectOptions {
  std::string file, collectives, above, fits, from;
  std::vector<std::string> except;
  bool no_full_replication = false, print = false;
  ReportSource source;
};

// Command line options add to those of the file; specifying an expectation twice is an error.
Expectations expectations_of(const ExpectOptions& options) {
  Expectations all;
  if (!options.from.empty()) all = Expectations::parse(read_file(options.from)).value();
  auto once = [&](bool given, const char* what) {
    if (given)
      throw Error(ErrorCode::kInvalidArgument,
                  cat("[expect] ", options.from, " and the command line both specify ", what));
  };
  if (!options.collectives.empty()) {
    once(all.collectives.has_value(), "collectives");
    all.collectives = ExpectedCollectives::parse(options.collectives).value();
  }
  if (options.no_full_replication || !options.above.empty() || !options.except.empty()) {
    once(all.no_full_replication.has_value(), "`no full replication`");
    all.no_full_replication.emplace();
    if (!options.above.empty())
      all.no_full_replication->least_bytes = parse_bytes(options.above).value();
    all.no_full_replication->except = options.except;
  }
  if (!options.fits.empty()) {
    once(all.fits_margin.has_value(), "`fits`");
    all.fits_margin = parse_margin(options.fits).value();
  }
  if (all.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "[expect] no expectations: specify --collectives, --no-full-replication, --fits "
                "or --from");
  return all;
}

int run_expect(const ExpectOptions& options) {
  Expectations expected = expectations_of(options);
  if (options.print) {
    std::fputs(expected.to_string().c_str(), stdout);
    return 0;
  }
  if (options.file.empty())
    throw Error(ErrorCode::kInvalidArgument, "[expect] no report or module file is specified");
  ExpectationReport found = check_expectations(load_report(options.file, options.source), expected);
  for (const std::string& text : found.met) std::printf("ok: %s\n", text.c_str());
  for (const std::string& text : found.broken) std::printf("FAILED: %s\n", text.c_str());
  return found.ok() ? 0 : 1;
}

}  // namespace

void add_expect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExpectOptions>();
  CLI::App* command = app.add_subcommand(
      "expect", "Checks a program's collectives, replication and memory against a list");
  command->footer(
      "Expected collectives: \"1 all-reduce over model; 2 all-gathers over data, at most 64 "
      "MiB\".\n"
      "Numbers may be `at most 2`, `no` or `any`; other collectives fail the check unless there "
      "is\n"
      "`others allowed`. A file (--from) has one item per line, which may also be `no full\n"
      "replication above 1 MiB except \"lnf*\"` or `fits with 10% spare`; # begins a comment.\n"
      "Exit codes: 0 if all expectations hold, 1 if not, 2 for an error.");
  command->add_option("file", options->file, "report (JSON of `meshard explain`) or module");
  options->source.add_options(*command);
  command->add_option("--collectives", options->collectives,
                      "the exact collectives, separated by ;");
  command->add_flag(
      "--no-full-replication", options->no_full_replication,
      "no replicated values that the mesh could split, and no full rematerialization");
  command->add_option("--above", options->above,
                      "smaller values may be replicated (default: 1 MiB)");
  command->add_option("--except", options->except,
                      "names of values that may be replicated; * matches any text");
  command
      ->add_option("--fits", options->fits,
                   "fits into a device's memory with this much to spare: 10%")
      ->expected(0, 1)
      ->default_str("0%");
  command->add_option("--from", options->from, "a file of expectations; - is standard input");
  command->add_flag("--print", options->print,
                    "print the expectations in the format of --from, check nothing");
  command->callback([options, command, &exit_code] {
    if (command->count("--fits") > 0 && options->fits.empty()) options->fits = "0%";
    exit_code = run_with_exit_code([&] { return run_expect(*options); });
  });
}

}  // namespace meshard::tool
