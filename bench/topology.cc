// Meshes on hardware: the hops between their neighbors, compared with the device orders that JAX
// chose, and the time to build a mesh.
#include <map>

#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "tests/support/recorded_meshes.h"

namespace meshard::bench {
namespace {

void one_ring(Report& report, std::string name, const char* tpu) {
  Topology topology = tpu_topology(tpu).value();
  RingMesh ring = ring_mesh(topology, {topology.size()});
  report.add({.name = std::move(name),
              .work = cat("mean hops along one axis over all of ", tpu),
              .unit = "hops",
              .ours = ring.hops->mean(),
              .goal = "1: a ring of neighbors",
              .bound = 1});
}

// Over all shapes that JAX built: the largest mean number of hops of any axis.
void recorded_rows(Report& report) {
  std::map<std::string, Topology> topologies;
  double ours = 0, theirs = 0;
  int meshes = 0, above = 0;
  for (const RecordedMesh& recorded : recorded_meshes(MESHARD_GOLDEN)) {
    const Topology& topology =
        topologies.try_emplace(recorded.topology, tpu_topology(recorded.topology).value())
            .first->second;
    Mesh jax(mesh_axes(recorded.shape), recorded.ids);
    RingMesh ring = ring_mesh(topology, recorded.shape, std::nullopt, recorded.outer);
    double our_worst = ring.hops->worst_mean(), jax_worst = mesh_hops(jax, topology).worst_mean();
    ours += our_worst;
    theirs += jax_worst;
    above += our_worst > jax_worst + 1e-9;
    ++meshes;
  }
  report.add({.name = "topology.hops.recorded",
              .work = cat("mean hops along the longest axis, of ", meshes, " shapes on 60 TPUs"),
              .unit = "hops",
              .ours = ours / meshes,
              .floor = 0,
              .floor_name = {},
              .goal = "no shape above JAX's order",
              .bound = theirs / meshes,
              .also = above == 0,
              .note = cat("JAX ", theirs / meshes, "; above it in ", above)});
}

// Measures the milliseconds of one build().
template <class Build>
void creation_row(Report& report, std::string name, std::string work, Build&& build) {
  Least least;
  for (int turn = 0; turn < 40; ++turn) {  // 0.4 s: longer than a busy moment of the machine
    double begin = now();
    Mesh mesh = build();
    double time = (now() - begin) / 1e3;
    if (turn > 0 && mesh.size() > 0) least.take(time);
  }
  report.add({.name = std::move(name),
              .work = std::move(work),
              .unit = "ms",
              .ours = least.value,
              .goal = "a few ms; JAX 43 ms",
              .bound = 10});
}

}  // namespace

void topology_rows(Report& report) {
  one_ring(report, "topology.hops.v5e", "v5e:8x8");
  one_ring(report, "topology.hops.v5p", "v5p:4x4x4");
  recorded_rows(report);
  Topology large = tpu_topology("v5p:32x32x64").value();
  creation_row(report, "topology.assigned", "torus_mesh of 65,536 devices, 1024 x 64", [&] {
    return torus_mesh(large, {1024, 64});
  });
  creation_row(report, "topology.rings", "ring_mesh of 65,536 devices, 1024 x 64, and its hops",
               [&] {
                 return ring_mesh(large, {1024, 64}).mesh;
               });
}

}  // namespace meshard::bench
