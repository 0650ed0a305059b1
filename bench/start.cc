// From the start of a process to its first sharded result, in two kinds of child processes.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/runtime/internal/process_runtime.h"

extern char** environ;

namespace meshard::bench {
namespace {

// The matmul of the row `call.matmul`. Writes its module for the other child.
void first_result(const std::string& module_file) {
  Mesh mesh({{"tp", 8}});
  Tensor x = mark_sharding(from_host(HostArray::full<float>({8, 64}, 1.0f)), mesh, P());
  Tensor w = mark_sharding(from_host(HostArray::full<float>({64, 64}, 1.0f)), mesh, P(none, "tp"));
  auto step = jit([](Tensor a, Tensor b) { return matmul(a, b); });
  wait_for(step(x, w));
  if (!module_file.empty()) std::ofstream(module_file) << module_of(step);
}

void first_raw_result(const std::string& plugin, const std::string& module_file) {
  std::ostringstream module;
  module << std::ifstream(module_file).rdbuf();
  RawProgram program(make_raw_client(plugin, 8), module.str(), 8, {{8, 64}, {64, 8}});
  program.launch();
  program.await();
}

// The 12-layer step is compiled or loaded, and can be called.
void runnable_step(bool repeated) {
  GptSizes sizes;
  if (repeated) sizes.form = LayerForm::kLayers;
  (void)process_runtime().programs.get(recorded_step(sizes), SourceLocation::current());
}

struct Start {
  double milliseconds = 1e300, megabytes = 1e300;
};

// Runs this program as a child, and updates the minimum of the results that children reported.
void run_child(std::vector<std::string> arguments, Start& least) {
  arguments.insert(arguments.begin(), {"/proc/self/exe", "--child"});
  std::string begin = std::to_string(now());
  arguments.push_back(begin);
  std::vector<char*> list;
  for (std::string& each : arguments) list.push_back(each.data());
  list.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = 0;
  int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, list.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  if (failed != 0) return;
  int status = 0;
  waitpid(child, &status, 0);
  double milliseconds = 0, megabytes = 0;
  if (std::sscanf(text.c_str(), "%lf %lf", &milliseconds, &megabytes) != 2) return;
  least.milliseconds = std::min(least.milliseconds, milliseconds);
  least.megabytes = std::min(least.megabytes, megabytes);
}

}  // namespace

int start_child(const std::vector<std::string>& arguments) {
  if (arguments[0] == "ours")
    first_result({});
  else if (arguments[0] == "repeated" || arguments[0] == "plain")
    runnable_step(arguments[0] == "repeated");
  else if (arguments[0] == "module")
    first_result(arguments[1]);
  else
    first_raw_result(arguments[1], arguments[2]);
  double time = now() - std::atof(arguments.back().c_str());
  std::printf("%.3f %.1f\n", time / 1e3, double(memory("VmHWM")) / (1 << 20));
  std::fflush(stdout);
  _exit(0);  // the cost of a normal exit is not measured
}

namespace {

// Children that keep compiled programs in a folder of their own. They are compiled here once.
struct Warm {
  Start result, repeated, plain;
};

Warm warm_starts(const std::string& plugin) {
  std::string folder = "/tmp/meshard-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return {};
  setenv("MESHARD_PLUGIN", plugin.c_str(), 1);
  setenv("MESHARD_CACHE", folder.c_str(), 1);
  setenv("MESHARD_PROGRAM_CACHE_MB", "1024", 1);
  Warm warm;
  Start ignored;
  for (const char* child : {"ours", "repeated", "plain"}) run_child({child}, ignored);
  for (int i = 0; i < 12; ++i) {
    run_child({"ours"}, warm.result);
    run_child({"repeated"}, warm.repeated);
    if (i < 3) run_child({"plain"}, warm.plain);
  }
  setenv("MESHARD_PROGRAM_CACHE_MB", "0", 1);
  unsetenv("MESHARD_CACHE");
  std::filesystem::remove_all(folder);
  return warm;
}

}  // namespace

void start_rows(Report& report) {
  std::string module_file = "/tmp/meshard-bench-" + std::to_string(getpid()) + ".mlir";
  std::string plugin = runtime_client().plugin().path();
  Start ours, raw, ignored;
  setenv("MESHARD_PROGRAM_CACHE_MB", "0", 1);  // for the children that compile
  run_child({"module", module_file}, ignored);
  run_child({"raw", plugin, module_file}, ignored);
  for (int i = 0; i < 7; ++i) {
    run_child({"ours"}, ours);
    run_child({"raw", plugin, module_file}, raw);
  }
  std::remove(module_file.c_str());
  Warm warm = warm_starts(plugin);
  report.add({.name = "start.disk",
              .work = "the same with the program on disk",
              .unit = "ms",
              .ours = warm.result.milliseconds,
              .goal = "under 50 ms",
              .bound = 50});
  report.add({.name = "start.disk.memory",
              .work = "peak memory until then",
              .unit = "MB",
              .ours = warm.result.megabytes,
              .goal = "under 80 MB",
              .bound = 80});
  report.add({.name = "start.layers.disk",
              .work = "to a step of 12 repeated layers that can be called, from disk",
              .unit = "ms",
              .ours = warm.repeated.milliseconds,
              .goal = "at most 150 ms",
              .bound = 150});
  report.add({.name = "start.layers12.disk",
              .work = "the same with 12 layers in a plain loop",
              .unit = "ms",
              .ours = warm.plain.milliseconds,
              .goal = "at most 1,150 ms",
              .bound = 1150});
  report.add({.name = "start.time",
              .work = "from the process's start to the first sharded result",
              .unit = "ms",
              .ours = ours.milliseconds,
              .floor = raw.milliseconds,
              .floor_name = "the same through the C API",
              .goal = "at most 10 ms more",
              .bound = raw.milliseconds + 10});
  report.add({.name = "start.memory",
              .work = "peak memory until then",
              .unit = "MB",
              .ours = ours.megabytes,
              .floor = raw.megabytes,
              .floor_name = "the same through the C API",
              .goal = "at most 10 MB more",
              .bound = raw.megabytes + 10});
}

}  // namespace meshard::bench
