// The subcommands of `meshard`. Each adds itself to the program and sets the exit code when it
// runs.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace meshard::tool {

void add_diff(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_expect(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_explicit(CLI::App& app, int& exit_code);
void add_fetch(CLI::App& app, int& exit_code);
/// `program`: the words after `--`, which the caller has cut off by split_program().
void add_launch(CLI::App& app, int& exit_code, std::vector<std::string> program);
void add_layout(CLI::App& app, int& exit_code);
void add_mesh(CLI::App& app, int& exit_code);
void add_op(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_same(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_torus(CLI::App& app, int& exit_code);

/// Cuts `-- PROGRAM ARGUMENTS` off the command line of `meshard launch`, and returns it without the
/// mark. Empty for other subcommands.
std::vector<std::string> split_program(int& argc, char** argv);

}  // namespace meshard::tool
