// Loads a report from a file: a saved report, or a module that is compiled to make the report.
#pragma once
#include <cstdio>
#include <string>

#include "meshard/base/error.h"
#include "meshard/explain/report.h"
#include "meshard/target/compile_for.h"

namespace CLI {  // NOLINT(readability-identifier-naming): of a library
class App;
}

namespace meshard::tool {

/// How modules are compiled in other processes.
struct CompileSettings {
  std::string plugin, cache;
  std::int64_t time_limit = 0;
  bool no_cache = false;

  /// Adds `--plugin`, `--compile-limit`, `--cache` and `--no-cache`.
  void add_options(CLI::App& command);
  CompileForOptions compile_options() const;
};

/// How module files are compiled to make their reports.
struct ReportSource : CompileSettings {
  std::string topology;
  /// `data=4,model=2`. Empty: the mesh of the module.
  std::string mesh;

  /// Adds `--topology`, `--mesh` and those of CompileSettings.
  void add_options(CLI::App& command);
};

/// Loads a report from `path`: JSON of `meshard explain --json`, or a StableHLO module, which is
/// compiled for source.topology.
/// @error throws: the file cannot be read; it is a module and no topology is given; compilation
/// fails.
ProgramReport load_report(const std::string& path, const ReportSource& source);

/// The bytes of a file; `-` is standard input, which can be read once. @error throws if it cannot
/// be read
std::string read_file(const std::string& path);

/// Runs the body of a command. On an error, prints it and returns 2; 1 is for negative results.
template <class Body>
int run_with_exit_code(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "meshard: %s\n", error.what());
    return 2;
  }
}

}  // namespace meshard::tool
