// The subcommands of `meshard`. Each adds itself to the program and sets the exit code when it
// runs.
#pragma once

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
void add_layout(CLI::App& app, int& exit_code);
void add_mesh(CLI::App& app, int& exit_code);
void add_op(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_same(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_torus(CLI::App& app, int& exit_code);

}  // namespace meshard::tool
