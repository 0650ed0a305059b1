// meshard: the library's command line tool.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "meshard/base/error.h"
#include "tools/meshard/subcommands.h"

int main(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, exit statuses of child processes are lost
  // Plugins read these variables when they are loaded.
  ::setenv("TPU_SKIP_MDS_QUERY", "1", 0);          // otherwise libtpu waits for a metadata server
  ::setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);  // describing hardware needs no lock on it
  ::setenv("TPU_LOG_DIR", "disabled", 0);

  CLI::App app("SPMD programs over device meshes, on any PJRT plugin.", "meshard");
  app.require_subcommand(1);
  int exit_code = 0;
  meshard::tool::add_diff(app, exit_code);
  meshard::tool::add_doctor(app, exit_code);
  meshard::tool::add_expect(app, exit_code);
  meshard::tool::add_explain(app, exit_code);
  meshard::tool::add_fetch(app, exit_code);
  meshard::tool::add_layout(app, exit_code);
  meshard::tool::add_mesh(app, exit_code);
  meshard::tool::add_op(app, exit_code);
  meshard::tool::add_plan(app, exit_code);
  meshard::tool::add_torus(app, exit_code);
  try {
    CLI11_PARSE(app, argc, argv);
  } catch (const meshard::Error& error) {
    std::fprintf(stderr, "meshard: %s\n", error.what());
    return 1;
  }
  return exit_code;
}
