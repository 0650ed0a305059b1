// meshard: the library's command line tool.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "meshard/base/environment.h"
#include "meshard/base/error.h"
#include "tools/meshard/command_line.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/version.h"

namespace {

// The command line is invalid, or the output could not be written.
constexpr int kNoAnswer = 2;

int complain(const std::string& problem) {
  std::fprintf(stderr, "meshard: %s\nRun `meshard --help` for more information.\n",
               problem.c_str());
  return kNoAnswer;
}

// Prints help or an error of the command line.
int end_parse(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, problem;
  int code = app.exit(error, out, problem);
  meshard::tool::print_text(out.str());
  std::string text = problem.str();
  if (!text.empty()) std::fprintf(stderr, "meshard: %s", text.c_str());
  return code == 0 ? 0 : kNoAnswer;
}

// A full disk or a closed pipe.
int check_output(int exit_code) {
  errno = 0;
  bool failed = std::fflush(stdout) != 0;
  std::string why = errno != 0 ? std::strerror(errno) : "an earlier write failed";
  if (!failed && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "meshard: cannot write the output: %s\n", why.c_str());
  return exit_code == 0 ? kNoAnswer : exit_code;
}

int run(CLI::App& app, int argc, char** argv, int& exit_code) {
  std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (std::string unknown = meshard::tool::unknown_word(app, words); !unknown.empty())
    return complain(unknown);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_parse(app, error);
  } catch (const meshard::Error& error) {
    std::fprintf(stderr, "meshard: %s\n", error.what());
    return 1;
  }
  return exit_code;
}

// Plugins read these variables when they are loaded. The programs of `launch` do not get them.
void set_plugin_variables() {
  ::setenv("TPU_SKIP_MDS_QUERY", "1", 0);          // otherwise libtpu waits for a metadata server
  ::setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);  // describing hardware needs no lock on it
  ::setenv("TPU_LOG_DIR", "disabled", 0);
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, exit statuses of child processes are lost
  if (argc < 2 || std::string_view(argv[1]) != "launch") set_plugin_variables();
  const std::vector<std::string> program = meshard::tool::split_program(argc, argv);
  meshard::report_unknown_variables();

  CLI::App app("SPMD programs over device meshes, on any PJRT plugin.", "meshard");
  app.require_subcommand(1);
  app.set_version_flag("--version", meshard::tool::version_text());
  app.footer(
      "Files: - is standard input, or standard output.\n"
      "Exit codes: 0; 1 if the answer is negative (an expectation fails, nothing fits, no plugin "
      "works) "
      "or "
      "an expression is invalid; 2 if there is no answer: the command line is invalid, a file "
      "cannot "
      "be read, or the output cannot be written. Text is wrapped for the terminal (COLUMNS), and "
      "never colored.");
  int exit_code = 0;
  meshard::tool::add_diff(app, exit_code);
  meshard::tool::add_doctor(app, exit_code);
  meshard::tool::add_expect(app, exit_code);
  meshard::tool::add_explain(app, exit_code);
  meshard::tool::add_explicit(app, exit_code);
  meshard::tool::add_fetch(app, exit_code);
  meshard::tool::add_launch(app, exit_code, program);
  meshard::tool::add_layout(app, exit_code);
  meshard::tool::add_mesh(app, exit_code);
  meshard::tool::add_op(app, exit_code);
  meshard::tool::add_plan(app, exit_code);
  meshard::tool::add_run(app, exit_code);
  meshard::tool::add_same(app, exit_code);
  meshard::tool::add_schedule(app, exit_code);
  meshard::tool::add_torus(app, exit_code);
  return check_output(run(app, argc, argv, exit_code));
}
