// meshard diff: compares two programs.
#include "meshard/report/diff.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

struct DiffOptions {
  std::string before, after, json, html;
  ReportSource source;
  bool fail_on_change = false, all = false;
};

int run_diff(const DiffOptions& options) {
  ReportDiff found = meshard::diff(load_report(options.before, options.source),
                                   load_report(options.after, options.source));
  if (!options.json.empty()) write_file(options.json, to_json(found) + "\n");
  if (!options.html.empty()) write_file(options.html, to_html(found));
  if (options.json != "-" && options.html != "-") print_text(found.to_string(options.all ? 0 : 12));
  return options.fail_on_change && !found.same() ? 1 : 0;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "Shows what changed between two programs: collectives, memory, time");
  command->footer(
      "A file is a report that `meshard explain --json` wrote, or a StableHLO module, which is\n"
      "compiled for --topology. Exit codes: 0; 1 if they differ and --fail-on-change is given; 2 "
      "for\n"
      "an error.");
  command->add_option("before", options->before, "report (JSON) or module; - is standard input")
      ->required();
  command->add_option("after", options->after, "report (JSON) or module")->required();
  options->source.add_options(*command);
  command->add_option("--json", options->json,
                      "write the difference as JSON to this file, instead of text to -");
  command->add_option("--html", options->html,
                      "write a page that shows both side by side to this file or -");
  command->add_flag("--fail-on-change", options->fail_on_change, "exit with code 1 if they differ");
  command->add_flag("--all", options->all, "print all lines");
  command->callback([options, &exit_code] {
    exit_code = run_with_exit_code([&] { return run_diff(*options); });
  });
}

}  // namespace meshard::tool
