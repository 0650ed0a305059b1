// What `meshard doctor --processes` finds out about one process.
#pragma once
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/processes/launch.h"
#include "meshard/processes/processes.h"

namespace meshard::tool {

/// A value: what a process knows before it joins the run.
struct ProcessFacts {
  /// As `meshard --version`.
  std::string meshard;
  /// The plugin for CPUs; empty if there is none.
  std::string plugin;
  /// `cpu, PJRT API 0.114, StableHLO up to 1.13.3`
  std::string plugin_version;
  /// SHA-256 of the file.
  std::string plugin_hash;
  /// Why it cannot be used; else empty.
  std::string plugin_problem;
  /// The library of collectives between processes, and the MPI or Gloo behind it; empty without.
  std::string library, library_name;
  /// Cores of the host that are online, and those that this process may use.
  int cores = 0, own_cores = 0;

  /// For the store.
  std::string to_string() const;
  /// @error invalid argument
  static Result<ProcessFacts> parse(const std::string& text);
};

/// Loads the plugin in a child process.
/// @param seconds the limit for that
/// @pre this process has one thread
ProcessFacts facts_of_this_process(const Launch& launch, double seconds);

/// What is wrong with the processes of a run; empty: nothing. Processes that differ in their
/// version of meshard, or in their plugin's version or file, are named.
std::vector<std::string> problems_of(const std::vector<ProcessFacts>& facts);

/// Advice for hosts with more processes than cores.
std::vector<std::string> crowding_of(const std::vector<ProcessInfo>& members,
                                     const std::vector<ProcessFacts>& facts);

/// `process 2`, `processes 0, 1 and 3`, `processes 0 to 7`
std::string names_of(const std::vector<int>& ranks);

}  // namespace meshard::tool
