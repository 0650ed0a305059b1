// Tested in tools/meshard/check_doctor_processes.py.
#include "tools/meshard/process_facts.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "meshard/base/cat.h"
#include "meshard/base/sha256.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/processes/gloo_communicator.h"
#include "meshard/processes/mpi_communicator.h"
#include "tools/meshard/child_process.h"
#include "tools/meshard/version.h"

namespace meshard::tool {
namespace {

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Result<std::string> hash_of_file(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                       &std::fclose);
  if (file == nullptr) return Error(ErrorCode::kNotFound, cat("cannot read ", path));
  Sha256 hash;
  std::string piece(std::size_t{1} << 20, '\0');
  for (std::size_t size; (size = std::fread(piece.data(), 1, piece.size(), file.get())) > 0;)
    hash.add(std::string_view(piece).substr(0, size));
  return hash.digits();
}

// Runs in a child. The output is the version and the hash, or the problem.
int examine_plugin(const std::string& path, std::string& out) {
  const auto fail = [&](const Error& error) {
    out = on_one_line(error.message());
    return 1;
  };
  Result<pjrt::Plugin> plugin = pjrt::Plugin::load(path);
  if (!plugin.ok()) return fail(plugin.error());
  Result<pjrt::Client> client = pjrt::Client::create(*plugin, {});
  if (!client.ok()) return fail(client.error());
  Result<std::string> hash = hash_of_file(path);
  if (!hash.ok()) return fail(hash.error());
  out = cat(*hash, " ", client->platform(), ", PJRT API ", plugin->version());
  if (!plugin->newest_stablehlo().empty())
    append(out, cat(", StableHLO up to ", plugin->newest_stablehlo()));
  return 0;
}

void describe_plugin(ProcessFacts& facts, double seconds) {
  pjrt::PluginSearch search = pjrt::find_plugins();
  for (const pjrt::SearchedPlace& place : search.places)
    if (place.reason == "MESHARD_PLUGIN" && !place.exists) {
      facts.plugin_problem = cat("MESHARD_PLUGIN names ", place.path, ", which does not exist");
      return;
    }
  Result<std::string> path = search.first("cpu");
  if (!path.ok()) {
    facts.plugin_problem = "no plugin for CPUs was found: `meshard fetch cpu` downloads one";
    return;
  }
  facts.plugin = *path;
  ChildOutcome outcome =
      run_in_child([&](std::string& out) { return examine_plugin(*path, out); }, seconds);
  if (!outcome.failure.empty()) {
    facts.plugin_problem = cat("the plugin ", outcome.failure);
  } else if (outcome.exit_code != 0) {
    facts.plugin_problem = outcome.output;
  } else {
    std::size_t space = outcome.output.find(' ');
    facts.plugin_hash = outcome.output.substr(0, space);
    facts.plugin_version = outcome.output.substr(space + 1);
  }
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// `values` by process. One line if they differ.
void compare(std::string_view what, const std::vector<std::string>& values,
             std::vector<std::string>& problems) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    ranks[values[rank]].push_back(static_cast<int>(rank));
  if (ranks.size() < 2) return;
  std::string text = cat(what, " differ");
  for (const auto& [value, of] : ranks)
    append(text, cat("\n  ", names_of(of), ": ", value.empty() ? "none" : value));
  problems.push_back(std::move(text));
}

constexpr std::array kTexts = {&ProcessFacts::meshard,        &ProcessFacts::plugin,
                               &ProcessFacts::plugin_version, &ProcessFacts::plugin_hash,
                               &ProcessFacts::plugin_problem, &ProcessFacts::library,
                               &ProcessFacts::library_name};

}  // namespace

std::string ProcessFacts::to_string() const {
  std::string text;
  for (auto member : kTexts) append(text, cat(on_one_line(this->*member), "\n"));
  return text + cat(cores, "\n", own_cores, "\n");
}

Result<ProcessFacts> ProcessFacts::parse(const std::string& text) {
  ProcessFacts facts;
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  if (lines.size() != kTexts.size() + 2)
    return Error(ErrorCode::kInvalidArgument,
                 "the processes run different versions of `meshard doctor`");
  for (std::size_t i = 0; i < kTexts.size(); ++i) facts.*kTexts[i] = lines[i];
  facts.cores = std::atoi(lines[kTexts.size()].c_str());
  facts.own_cores = std::atoi(lines[kTexts.size() + 1].c_str());
  return facts;
}

ProcessFacts facts_of_this_process(const Launch& launch, double seconds) {
  ProcessFacts facts;
  facts.meshard = version_text();
  facts.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  facts.own_cores = allowed_cores();
  describe_plugin(facts, seconds);
  auto take = [&](const auto& library) {
    if (!library.ok()) return false;
    facts.library = library->path;
    facts.library_name = library->name;
    return true;
  };
  const bool has_mpi =
      launch.kind == LaunchKind::kMpi && take(installed_mpi_library(launch.family));
  if (!has_mpi && launch.kind != LaunchKind::kSingle) take(installed_gloo_library());
  return facts;
}

std::vector<std::string> problems_of(const std::vector<ProcessFacts>& facts) {
  std::vector<std::string> problems;
  std::map<std::string, std::vector<int>> of_plugins;
  std::vector<std::string> versions, plugins, libraries;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const ProcessFacts& one = facts[rank];
    if (!one.plugin_problem.empty())
      of_plugins[cat(one.plugin, one.plugin.empty() ? "" : ": ", one.plugin_problem)].push_back(
          static_cast<int>(rank));
    versions.push_back(one.meshard);
    plugins.push_back(one.plugin_problem.empty()
                          ? cat(one.plugin_version, ", sha256 ", one.plugin_hash.substr(0, 16))
                          : "not usable");
    libraries.push_back(one.library_name);
  }
  for (const auto& [problem, ranks] : of_plugins)
    problems.push_back(cat(names_of(ranks), ": ", problem));
  compare("the versions of meshard", versions, problems);
  compare("the plugins", plugins, problems);
  compare("the MPI or Gloo libraries", libraries, problems);
  return problems;
}

std::vector<std::string> crowding_of(const std::vector<ProcessInfo>& members,
                                     const std::vector<ProcessFacts>& facts) {
  struct Host {
    int processes = 0, cores = 0;
  };
  std::map<std::string, Host> hosts;
  for (std::size_t rank = 0; rank < members.size() && rank < facts.size(); ++rank) {
    Host& host = hosts[members[rank].host];
    ++host.processes;
    host.cores = facts[rank].cores;
  }
  std::vector<std::string> advice;
  for (const auto& [name, host] : hosts)
    if (host.cores > 0 && host.processes > host.cores)
      advice.push_back(cat(name, " has ", host.processes, " processes and ", host.cores,
                           " cores: messages wait for time slices, so the times above say little. "
                           "Start at most ",
                           host.cores, " processes there, or add machines"));
  return advice;
}

std::string names_of(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return cat("process ", ranks[0]);
  bool consecutive = ranks.size() > 2 && ranks.back() - ranks.front() + 1 == std::ssize(ranks);
  if (consecutive) return cat("processes ", ranks.front(), " to ", ranks.back());
  std::string text = "processes ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    append(text, cat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]));
  return text;
}

}  // namespace meshard::tool
