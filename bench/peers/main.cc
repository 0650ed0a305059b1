// The benchmarks beside other projects: the same work, in turns, in one run.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "meshard/runtime/internal/process_runtime.h"

namespace meshard::bench {
namespace {

struct ContestGroup {
  const char* name;
  const char* what;
  void (*run)(Contest&);
};

const ContestGroup kContests[] = {
    {"call", "jitted calls with 2 to 2,000 parameters (JAX, torch_xla)", call_contest},
    {"transfer", "256 MB to devices, to the host, and from rows to columns (JAX)",
     transfer_contest},
    {"training", "the model of examples/gpt with AdamW (JAX)", training_contest},
    {"layers", "12 equal layers: loop, scan, recomputation (JAX)", layers_contest},
    {"start", "processes up to their first result (JAX)", start_contest},
    {"processes", "programs over 2 and 4 processes (JAX with gloo, MPI)", processes_contest},
    {"decode", "greedy decoding with a key-value cache (JAX, PyTorch)", decode_contest},
    {"mesh", "meshes of 1,048,576 ranks (PyTorch)", mesh_contest},
    {"layout", "operations of the layout algebra (PyTorch)", layout_contest},
    {"record", "recording ops (torch_xla)", record_contest},
    {"programs", "programs of PyTorch: Llama, ResNet-50 (PyTorch, torch_xla)", program_contest},
    {"python", "our Python package: recording, calls, tracing, start (JAX)", python_contest},
};

int contest_usage(int status) {
  std::puts(
      "usage: meshard-peers --scripts FOLDER --peer NAME=PYTHON ... [--only ROWS]... [--json FILE] "
      "[--programs FOLDER]\n");
  std::puts(
      "NAME is jax, torch, torch_xla or python (our package), PYTHON the interpreter of its "
      "environment. Ours and");
  std::puts(
      "theirs run in turns, and the minimum of each counts: compare ratios. --programs keeps");
  std::puts("the optimized programs of both.\n\nROWS:");
  for (const ContestGroup& group : kContests) std::printf("  %-9s %s\n", group.name, group.what);
  return status;
}

int run_contest(const std::vector<std::string>& arguments) {
  std::vector<std::string> only;
  std::map<std::string, std::string> pythons;
  std::string json, scripts, programs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") return contest_usage(0);
    if (i + 1 == arguments.size()) return contest_usage(2);
    const std::string& value = arguments[++i];
    if (argument == "--peer" && value.find('=') != value.npos)
      pythons[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    else if (argument == "--only")
      only.push_back(value);
    else if (argument == "--json")
      json = value;
    else if (argument == "--scripts")
      scripts = value;
    else if (argument == "--programs")
      programs = value;
    else
      return contest_usage(2);
  }
  for (const std::string& name : only) {
    bool known = false;
    for (const ContestGroup& group : kContests) known = known || name == group.name;
    if (!known) return contest_usage(2);
  }
  if (scripts.empty()) return contest_usage(2);
  if (std::error_code failed; !programs.empty()) {
    std::filesystem::create_directories(programs, failed);
    if (failed) {
      std::fprintf(stderr, "meshard-peers: cannot create %s: %s\n", programs.c_str(),
                   failed.message().c_str());
      return 1;
    }
  }

  // What compiles is measured, so programs on disk do not count, except where they are the row.
  setenv("MESHARD_PROGRAM_CACHE_MB", "0", 1);
  Contest contest(std::move(pythons), scripts, runtime_client().plugin().path());
  contest.programs = programs;
  for (const ContestGroup& group : kContests) {
    bool wanted = only.empty();
    for (const std::string& name : only) wanted = wanted || name == group.name;
    if (wanted) contest.attempt(group.name, [&] { group.run(contest); });
  }
  std::printf("\n%s\n", contest.report().summary().c_str());
  if (!json.empty() && !(std::ofstream(json) << contest.report().json())) {
    std::fprintf(stderr, "meshard-peers: cannot write %s\n", json.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace meshard::bench

int main(int count, char** list) {
  std::vector<std::string> arguments(list + 1, list + count);
  try {
    if (arguments.size() > 2 && arguments[0] == "--child" && arguments[1] == "processes")
      return meshard::bench::processes_contest_child({arguments.begin() + 2, arguments.end()});
    if (arguments.size() > 1 && arguments[0] == "--child")
      return meshard::bench::start_contest_child({arguments.begin() + 1, arguments.end()});
    return meshard::bench::run_contest(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshard-peers: %s\n", error.what());
    return 1;
  }
}
