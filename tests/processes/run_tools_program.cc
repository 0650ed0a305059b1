// A program of several processes whose traces, reports and meshes check_run_tools.py examines.
// usage: run_tools_program SCENARIO [PATH]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

void say(const std::string& text) {
  if (processes().rank() != 0) return;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

Mesh all_devices(const char* axis = "x") { return mesh_1d(axis); }

/// Between two barriers to which the processes come one after the other, each process runs a
/// program that sums over all of them. The second trace is written to PATH.1.
void trace(const std::string& path) {
  Processes run = processes();
  Mesh mesh = all_devices();
  Tensor x = mark_sharding(arange(2.0 * static_cast<double>(mesh.size())), mesh, P("x"));
  auto step = jit([](Tensor in) { return sum(in * 2); }, {.name = "total"});
  for (const std::string& file : {path, path + ".1"}) {
    (void)run.barrier("together").value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50 * run.rank()));
    TraceSession session = start_trace();
    std::this_thread::sleep_for(std::chrono::milliseconds(50 * (run.size() - run.rank())));
    (void)run.barrier("first").value();
    Tensor total = step(x);
    sync(total);
    (void)gather(x + 1);
    (void)run.barrier("second").value();
    (void)session.write_all(file).value();
  }
  say("written");
}

/// The file cannot be written, which all processes learn.
void no_trace(const std::string& path) {
  TraceSession session = start_trace();
  Result<void> written = session.write_all(path);
  std::printf("process %d: %s\n", processes().rank(),
              written.ok() ? "no error" : written.error().message().c_str());
}

/// Meshes whose outer axes are the processes, and sums along their axes.
void hybrid(const std::string&) {
  Topology topology = runtime_topology();
  std::int64_t count = topology.size();
  HybridOptions by_process{.granule = Granule::kProcess, .allow_no_coords = true};
  for (const auto& outer : {IntVector{count, 1}, IntVector{1, count}, IntVector{2, count / 2}}) {
    Mesh mesh = hybrid_mesh(topology, IntVector{1, 1}, outer, {{"data", "model"}}, by_process);
    for (const DeviceAttributes& device : topology.devices()) {
      IntVector at = *mesh.coordinate(device.id);
      std::int64_t granule = at[0] * outer[1] + at[1];
      if (processes().size() > 1 && granule != device.process_index)
        throw InternalError(cat("device ", device, " is at ", granule));
    }
    Tensor x = mark_sharding(reshape(arange(16.0), {4, 4}), mesh, P("data", "model"));
    say(cat(mesh, ": ", gather(sum(x * 2, 0)).to_string(), " ", gather(sum(x, 1)).to_string()));
  }
}

/// Outer axes over machines; a machine is a granule if there are several.
void machines(const std::string&) {
  Topology topology = runtime_topology();
  Mesh mesh = hybrid_mesh(topology, {1, topology.size() / 2}, {2, 1}, {{"machine", "local"}},
                          {.allow_no_coords = true});
  Tensor x = mark_sharding(arange(8.0), mesh, P({"machine", "local"}));
  say(cat(join(mesh.device_ids().to_vector(), ","), ": ", sum(x).item<float>()));
}

/// The report of a program in this run.
void report(const std::string&) {
  std::int64_t count = all_devices().size();
  Mesh mesh({{"data", count / 2}, {"model", 2}});
  Tensor x = mark_sharding(ones({8, 8}), mesh, P("data", "model"));
  Tensor w = mark_sharding(ones({8, 4}), mesh, P("model", none));
  auto step = jit([](Tensor a, Tensor b) { return matmul(a, b); }, {.name = "product"});
  sync(step(x, w));
  if (processes().rank() != 0) return;
  say(explain(step).to_string());
  LinkOptions links;
  links.between_devices = LinkFigures{1e6, 0};
  if (processes().size() > 1) links.between_processes = LinkFigures{1e3, 0.5};
  say(cat("seconds ", explain(step, links).parts().roofline->seconds()));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    (void)initialize_processes().value();
    configure_runtime({.cpu_devices = 4}).value();
    std::string scenario = count > 1 ? arguments[1] : "", path = count > 2 ? arguments[2] : "";
    if (scenario == "trace") trace(path);
    if (scenario == "no_trace") no_trace(path);
    if (scenario == "hybrid") hybrid(path);
    if (scenario == "machines") machines(path);
    if (scenario == "report") report(path);
    (void)processes().barrier("the end").value();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "process %d: %s\n", processes().rank(), error.what());
    return 1;
  }
}
