// From the start of a process to its first sharded result, in two kinds of child processes.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"

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
  else if (arguments[0] == "module")
    first_result(arguments[1]);
  else
    first_raw_result(arguments[1], arguments[2]);
  double time = now() - std::atof(arguments.back().c_str());
  std::printf("%.3f %.1f\n", time / 1e3, double(memory("VmHWM")) / (1 << 20));
  std::fflush(stdout);
  _exit(0);  // the cost of a normal exit is not measured
}

void start_rows(Report& report) {
  std::string module_file = "/tmp/meshard-bench-" + std::to_string(getpid()) + ".mlir";
  std::string plugin = runtime_client().plugin().path();
  Start ours, raw, ignored;
  run_child({"module", module_file}, ignored);
  run_child({"raw", plugin, module_file}, ignored);
  for (int i = 0; i < 7; ++i) {
    run_child({"ours"}, ours);
    run_child({"raw", plugin, module_file}, raw);
  }
  std::remove(module_file.c_str());
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
