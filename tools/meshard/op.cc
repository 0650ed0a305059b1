// meshard op: prints the reference page of one op.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "meshard/ops/definition/op_table.h"
#include "tools/meshard/command_line.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/reference/op_page.h"

namespace meshard::tool {
namespace {

int run(const std::string& name) {
  if (name.empty()) {
    print_text(list_of_names());
    return 0;
  }
  const OpDef* op = find_op(name);
  std::string page = op ? op_page(*op) : declaration_page(name);
  if (page.empty()) {
    std::vector<std::string> names;
    for (const OpDef* each : all_ops()) names.emplace_back(each->name);
    std::string known = nearest(name, names);
    std::fprintf(stderr, "meshard: unknown op '%s'%s; `meshard op` lists all ops\n", name.c_str(),
                 known.empty() ? "" : cat("; did you mean ", known, "?").c_str());
    return 1;
  }
  print_text(page);
  return 0;
}

}  // namespace

void add_op(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("op", "Shows what an op does, and how it is recorded and lowered");
  command->add_option("name", *name, "the op; default: list all ops");
  command->callback([name, &exit_code] { exit_code = run(*name); });
}

}  // namespace meshard::tool
