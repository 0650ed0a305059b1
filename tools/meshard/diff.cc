// meshard diff: compares two programs.
#include "meshard/report/diff.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <vector>

#include "meshard/report/diff_text.h"
#include "tools/meshard/load_report.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

struct DiffOptions {
  std::string before, after, json, html, markdown;
  std::vector<std::string> fail_on;
  ReportSource source;
  bool fail_on_change = false, all = false;
};

int run_diff(const DiffOptions& options) {
  std::vector<DiffLimit> limits;  // parsed first, so that errors precede slow compiles
  for (const std::string& text : options.fail_on)
    for (const DiffLimit& limit : parse_diff_limits(text).value()) limits.push_back(limit);
  ReportDiff found = meshard::diff(load_report(options.before, options.source),
                                   load_report(options.after, options.source));
  std::vector<std::string> over = over_limits(found, limits);
  if (!options.json.empty()) write_file(options.json, to_json(found) + "\n");
  if (!options.html.empty()) write_file(options.html, to_html(found));
  if (!options.markdown.empty())
    write_file(options.markdown, to_markdown(found, {.over_limits = over}));
  if (options.json != "-" && options.html != "-" && options.markdown != "-")
    print_text(found.to_string(options.all ? 0 : 12));
  for (const std::string& line : over)
    std::fprintf(stderr, "meshard diff: over the limit: %s\n", line.c_str());
  return !over.empty() || (options.fail_on_change && !found.same()) ? 1 : 0;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand(
      "diff", "Shows what changed between two programs: collectives, memory, time");
  command->footer(
      "A file is a report that `meshard explain --json` wrote, or a StableHLO module, which is\n"
      "compiled for --topology. Exit codes: 0; 1 if they differ and --fail-on-change is given, or "
      "if\n"
      "the change is over a limit of --fail-on; 2 for an error.\n"
      "Example: meshard diff base.json head.json --markdown page.md --fail-on 'collectives; memory "
      "5%'");
  command->add_option("before", options->before, "report (JSON) or module; - is standard input")
      ->required();
  command->add_option("after", options->after, "report (JSON) or module")->required();
  options->source.add_options(*command);
  command->add_option("--json", options->json,
                      "write the difference as JSON to this file, instead of text to -");
  command->add_option("--html", options->html,
                      "write a page that shows both side by side to this file or -");
  command->add_option("--markdown", options->markdown,
                      "write a page for a pull request on GitHub to this file or -");
  command
      ->add_option("--fail-on", options->fail_on,
                   "exit with code 1 if the second program has more than the first: `collectives; "
                   "bytes 5%; memory 5%; time 5%; shardings`")
      ->allow_extra_args(false);
  command->add_flag("--fail-on-change", options->fail_on_change, "exit with code 1 if they differ");
  command->add_flag("--all", options->all, "print all lines");
  command->callback([options, &exit_code] {
    exit_code = run_with_exit_code([&] { return run_diff(*options); });
  });
}

}  // namespace meshard::tool
