// The benchmarks: meshard's times and bandwidths next to what the machine allows, in one run.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"
#include "bench/scale/curve.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

const Group kGroups[] = {
    {"record", "recording ops", record_rows},
    {"step", "tracing, differentiating and lowering a training step", step_rows},
    {"layers", "12 equal layers as a plain loop and repeated", layers_rows},
    {"call", "calling compiled programs on 8 devices", call_rows},
    {"single", "calling a compiled program on one device", single_rows},
    {"decode", "steps with a key-value cache", decode_rows},
    {"pipeline", "pipelines of two stages", pipeline_rows},
    {"place", "host arrays onto devices", place_rows},
    {"gather", "arrays on devices to the host", gather_rows},
    {"reshard", "arrays on devices to another sharding", reshard_rows},
    {"checkpoint", "saving and restoring a training state", checkpoint_rows},
    {"start", "the start of a process", start_rows},
    {"mesh", "meshes of up to 100 M ranks", mesh_rows},
    {"slices", "the parts of a tensor on 65,536 devices", slices_rows},
    {"layout", "operations of the layout algebra", layout_rows},
    {"topology", "meshes on hardware", topology_rows},
    {"explain", "reading compiled modules", explain_rows},
    {"scale.graphs", "programs of up to 100,000 ops", graph_curves, false},
    {"scale.transforms", "transforms, readers and writers of large programs", transform_curves,
     false},
    {"scale.arguments", "jitted calls with up to 10,000 arguments", argument_curves, false},
    {"scale.devices", "up to 512 virtual devices", device_curves, false},
    {"scale.programs", "up to 1,000 live programs", program_curves, false},
    {"scale.tensors", "up to a million live tensors", tensor_curves, false},
    {"scale.meshes", "meshes of up to 100 M devices", mesh_curves, false},
    {"scale.explain", "reports on up to 100,000 instructions", report_curves, false},
    {"scale.plan", "searches over up to 64 candidates", plan_curves, false},
    {"build", "building the project from nothing", build_rows, false},
};

// True if `name` is the group's name, or what comes before a dot in it.
bool names(const std::string& name, const Group& group) {
  std::string_view own = group.name;
  return own == name || (own.starts_with(name) && own[name.size()] == '.');
}

int usage(int status) {
  std::puts("usage: meshard-bench [--only ROWS]... [--json FILE]\n");
  std::puts(
      "Each row is measured in turns with its floor, the least that the machine allows; the "
      "minimum of each counts.");
  std::puts(
      "A group in which a goal is missed by less than a half runs up to twice more, in other "
      "processes, and the best of each side counts.");
  std::puts("Run it on an idle machine: a goal missed on a busy machine means little.\n\nROWS:");
  for (const Group& group : kGroups)
    std::printf("  %-16s %s%s\n", group.name, group.what,
                group.by_default ? "" : " (only if named)");
  std::puts("`--only scale` runs all groups that begin with `scale.`.");
  return status;
}

// What the group's rows are in a process of its own, because the heap and the threads that one
// group leaves change the times of the next: a checkpoint is restored in 19 ms, and in 30 ms after
// arrays were placed, gathered and resharded. None if it has failed.
std::optional<std::string> rows_apart(const Group& group, bool silent) {
  return output_of_child([&] {
    // What compiles, compiles in each run. The rows of starts have a cache of their own.
    setenv("MESHARD_PROGRAM_CACHE_MB", "0", 1);
    Report own("floor", silent);
    group.run(own);
    return own.json();
  });
}

// Runs a group, and up to twice more if a goal was nearly met: where a process has its memory, and
// what else runs on the machine, changes times for longer than the turns of a row last. Groups that
// run only if named take too long for that.
// @return false if it has failed
bool run_apart(const Group& group, Report& report) {
  const int most = group.by_default ? 2 : 0;
  const std::size_t first = report.rows().size();
  auto is_near = [&] {
    return std::any_of(report.rows().begin() + static_cast<std::ptrdiff_t>(first),
                       report.rows().end(), [](const Row& row) { return row.nearly_met(); });
  };
  std::optional<std::string> json = rows_apart(group, false);
  if (json) report.take(*json);
  int more = 0;
  for (; json && more < most && is_near(); ++more) {
    json = rows_apart(group, true);
    if (json) report.take_again(*json);
  }
  if (!json) {
    std::fprintf(stderr, "meshard-bench: the group %s failed\n", group.name);
    return false;
  }
  if (more > 0) {
    std::printf("%s: the best of %d runs\n", group.name, more + 1);
    report.print(first);
  }
  return true;
}

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> only;
  std::string json;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    bool more = i + 1 < arguments.size();
    if (argument == "--help" || argument == "-h") return usage(0);
    if (argument == "--only" && more)
      only.push_back(arguments[++i]);
    else if (argument == "--json" && more)
      json = arguments[++i];
    else
      return usage(2);
  }
  for (const std::string& name : only) {
    bool known = false;
    for (const Group& group : kGroups) known = known || names(name, group);
    if (!known) return usage(2);
  }

  auto is_wanted = [&](const Group& group) {
    bool wanted = only.empty() && group.by_default;
    for (const std::string& name : only) wanted = wanted || names(name, group);
    return wanted;
  };
  Report report;
  std::string failed;
  for (const Group& group : kGroups)
    if (is_wanted(group) && !run_apart(group, report)) failed += std::string(" ") + group.name;
  std::printf("\n%s\n", report.summary().c_str());
  if (!json.empty() && !(std::ofstream(json) << report.json())) {
    std::fprintf(stderr, "meshard-bench: cannot write %s\n", json.c_str());
    return 1;
  }
  if (!failed.empty())
    std::fprintf(stderr, "meshard-bench: these groups failed:%s\n", failed.c_str());
  return failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace meshard::bench

int main(int count, char** list) {
  std::vector<std::string> arguments(list + 1, list + count);
  try {
    if (arguments.size() > 1 && arguments[0] == "--child" && arguments[1] == "devices")
      return meshard::bench::device_child();
    if (arguments.size() > 1 && arguments[0] == "--child")
      return meshard::bench::start_child({arguments.begin() + 1, arguments.end()});
    return meshard::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshard-bench: %s\n", error.what());
    return 1;
  }
}
