// The benchmarks: meshard's times and bandwidths next to what the machine allows, in one run.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"

namespace meshard::bench {
namespace {

const Group kGroups[] = {
    {"record", "recording ops", record_rows},
    {"step", "tracing, differentiating and lowering a training step", step_rows},
    {"layers", "12 equal layers as a plain loop and repeated", layers_rows},
    {"call", "calling compiled programs on 8 devices", call_rows},
    {"single", "calling a compiled program on one device", single_rows},
    {"decode", "steps with a key-value cache", decode_rows},
    {"place", "host arrays onto devices", place_rows},
    {"gather", "arrays on devices to the host", gather_rows},
    {"start", "the start of a process", start_rows},
    {"mesh", "meshes of up to 100 M ranks", mesh_rows},
    {"layout", "operations of the layout algebra", layout_rows},
    {"topology", "meshes on hardware", topology_rows},
    {"explain", "reading compiled modules", explain_rows},
};

int usage(int status) {
  std::puts("usage: meshard-bench [--only ROWS]... [--json FILE]\n");
  std::puts(
      "Each row is measured in turns with its floor, the least that the machine allows; the "
      "minimum "
      "of each counts.");
  std::puts("Run it on an idle machine: a goal missed on a busy machine means little.\n\nROWS:");
  for (const Group& group : kGroups) std::printf("  %-8s %s\n", group.name, group.what);
  return status;
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
    for (const Group& group : kGroups) known = known || name == group.name;
    if (!known) return usage(2);
  }

  Report report;
  for (const Group& group : kGroups) {
    bool wanted = only.empty();
    for (const std::string& name : only) wanted = wanted || name == group.name;
    if (wanted) group.run(report);
  }
  std::printf("\n%s\n", report.summary().c_str());
  if (!json.empty() && !(std::ofstream(json) << report.json())) {
    std::fprintf(stderr, "meshard-bench: cannot write %s\n", json.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace meshard::bench

int main(int count, char** list) {
  std::vector<std::string> arguments(list + 1, list + count);
  try {
    if (arguments.size() > 1 && arguments[0] == "--child")
      return meshard::bench::start_child({arguments.begin() + 1, arguments.end()});
    return meshard::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshard-bench: %s\n", error.what());
    return 1;
  }
}
