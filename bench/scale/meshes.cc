// Meshes of up to 100 M devices: every operation of meshard/mesh and of shardings over them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/scale/curve.h"
#include "meshard/base/cat.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/mesh/builders.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/sharding/replica_groups.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/tile_assignment.h"
#include "meshard/sharding/tile_grid.h"
#include "meshard/stablehlo/shardy_text.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kMeshSizes[] = {1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24, 100 << 20};

volatile std::int64_t kept_size;

std::vector<MeshAxis> scale_axes(std::int64_t ranks) {
  return {{"dp", ranks / 64}, {"cp", 8}, {"tp", 8}};
}

// A mesh and what is derived from it, for the operations below.
struct Given {
  explicit Given(Mesh of)
      : mesh(std::move(of)),
        ranks(mesh.size()),
        dp(mesh.slice("dp")),
        tp(mesh.slice("tp")),
        dp_tp(mesh.slice({"dp", "tp"})),
        permuted(mesh.permute({"tp", "dp", "cp"})),
        flat(dp_tp.flatten("f")),
        unit(mesh.unsqueeze("one", 1)),
        equal(mesh.as_root()),
        text(mesh.to_string()),
        derived_text(dp_tp.to_string()) {}
  Mesh mesh;
  std::int64_t ranks;
  Mesh dp, tp, dp_tp, permuted, flat, unit, equal;
  std::string text, derived_text;
  std::int64_t device(int i) const { return mesh.device_id((ranks / 3 + 7919 * i) % ranks); }
};

struct Operation {
  const char* name;
  std::int64_t (*run)(const Given&, int i);
};

// Operations that must not depend on the number of devices.
const Operation kFlat[] = {
    {"slice",
     [](const Given& g, int) {
       return g.mesh.slice({"dp", "tp"}).size();
     }},
    {"permute",
     [](const Given& g, int) {
       return g.mesh.permute({"tp", "cp", "dp"}).size();
     }},
    {"flatten", [](const Given& g, int) { return g.dp_tp.flatten("f").size(); }},
    {"flatten some",
     [](const Given& g, int) {
       return g.mesh.flatten({"dp", "tp"}, "f").size();
     }},
    {"unflatten",
     [](const Given& g, int) {
       return g.mesh.unflatten("dp", {{"a", 2}, {"b", g.ranks / 128}}).size();
     }},
    {"reshape",
     [](const Given& g, int) {
       return g.mesh.reshape({{"a", g.ranks / 16}, {"b", 16}}).size();
     }},
    {"rename",
     [](const Given& g, int) {
       return g.mesh.rename({{"dp", "data"}}).size();
     }},
    {"squeeze", [](const Given& g, int) { return g.unit.squeeze().size(); }},
    {"unsqueeze", [](const Given& g, int) { return g.mesh.unsqueeze("one", 1).size(); }},
    {"concatenate",
     [](const Given& g, int) {
       return concatenate({g.tp, g.dp}).size();
     }},
    {"submesh", [](const Given& g, int i) { return g.mesh.submesh({"cp"}, g.device(i))->size(); }},
    {"submeshes", [](const Given& g, int i) { return g.mesh.submeshes({"cp"})[i].size(); }},
    {"as_root", [](const Given& g, int) { return g.mesh.as_root().size(); }},
    {"with_axis_kind",
     [](const Given& g, int) { return g.mesh.with_axis_kind("tp", AxisKind::kExplicit).size(); }},
    {"with_device_type", [](const Given& g, int) { return g.mesh.with_device_type("t").size(); }},
    {"with_uneven", [](const Given& g, int) { return g.mesh.with_uneven(Uneven::kError).size(); }},
    {"groups",
     [](const Given& g, int) {
       return g.mesh.groups({"dp", "tp"}).count();
     }},
    {"groups find", [](const Given& g, int i) { return *g.mesh.groups({"tp"}).find(g.device(i)); }},
    {"group", [](const Given& g, int i) { return g.mesh.group({"dp"}, g.device(i))->size(); }},
    {"group member",
     [](const Given& g, int i) { return (*g.mesh.group({"dp"}, g.device(i)))[i % 8]; }},
    {"from_group",
     [](const Given& g, int i) {
       return Mesh::from_group(*g.mesh.group({"dp"}, g.device(i)), "g").size();
     }},
    {"from_groups",
     [](const Given& g, int i) {
       DeviceGroup one = *g.mesh.group({"dp"}, g.device(i)),
                   two = *g.mesh.group({"tp"}, g.device(i));
       return Mesh::from_groups({one, two}, {"a", "b"}).size();
     }},
    {"local_rank", [](const Given& g, int i) { return *g.mesh.local_rank({"dp"}, g.device(i)); }},
    {"coordinate", [](const Given& g, int i) { return (*g.mesh.coordinate(g.device(i)))[0]; }},
    {"coordinate_at", [](const Given& g, int i) { return g.mesh.coordinate_at(i)[1]; }},
    {"coordinate flat", [](const Given& g, int i) { return (*g.flat.coordinate(g.device(i)))[0]; }},
    {"position", [](const Given& g, int i) { return *g.mesh.position(g.device(i)); }},
    {"row", [](const Given& g, int i) { return *g.dp_tp.row(g.device(i)); }},
    {"device_id", [](const Given& g, int i) { return g.mesh.device_id(i); }},
    {"ranks of a row", [](const Given& g, int i) { return g.dp_tp.ranks(i % 8).size(); }},
    {"device_ids", [](const Given& g, int i) { return g.permuted.device_ids()[i]; }},
    {"layout", [](const Given& g, int) { return g.permuted.layout().size(); }},
    {"axes_in_base",
     [](const Given& g, int) {
       return static_cast<std::int64_t>(g.flat.axes_in_base({"f"})->size());
     }},
    {"flattened",
     [](const Given& g, int) { return static_cast<std::int64_t>(g.mesh.flattened().size()); }},
    {"is_submesh_of", [](const Given& g, int) { return std::int64_t{g.tp.is_submesh_of(g.mesh)}; }},
    {"same_devices",
     [](const Given& g, int) { return std::int64_t{g.mesh.same_devices(g.permuted)}; }},
    {"overlap",
     [](const Given& g, int) { return static_cast<std::int64_t>(overlap(g.mesh, g.permuted)); }},
    {"==", [](const Given& g, int) { return std::int64_t{g.mesh == g.equal}; }},
    {"hash",
     [](const Given& g, int) { return static_cast<std::int64_t>(g.permuted.as_root().hash()); }},
    {"shardy text", [](const Given& g, int) { return std::ssize(shardy_text(g.mesh.base())); }},
    {"AxesIndex",
     [](const Given& g, int i) {
       return AxesIndex(g.mesh, {"dp", "tp"})(i);
     }},
    {"AxisGroups", [](const Given& g, int i) { return AxisGroups(g.mesh, {"cp"}).group(i)[1]; }},
    {"replica groups",
     [](const Given& g, int) {
       return std::ssize(replica_groups(g.mesh, {"dp", "tp"}).to_string());
     }},
    {"sharding",
     [](const Given& g, int) { return Sharding(g.mesh, P("dp", "tp"), 2).num_tiles(); }},
    {"sharding, flat", [](const Given& g, int) { return Sharding(g.flat, P("f"), 2).num_tiles(); }},
    {"slice of one",
     [](const Given& g, int i) {
       return Sharding(g.mesh, P("dp", "tp"), 2).slice(IntVector{1 << 20, 64}, i)[0].start;
     }},
    {"same placement",
     [](const Given& g, int) {
       return std::int64_t{
           Sharding(g.mesh, P("dp"), 1).same_placement(Sharding(g.equal, P("dp"), 1), 1)};
     }},
    {"tile assignment",
     [](const Given& g, int) {
       return std::ssize(tile_assignment(Sharding(g.mesh, P("dp", "tp"), 2)).to_string());
     }},
};

// Operations whose text has every device id of a listed mesh.
const Operation kText[] = {
    {"to_string",
     [](const Given& g, int) { return std::ssize(g.mesh.to_string(MeshText::kWithRoot)); }},
    {"parse", [](const Given& g, int) { return Mesh::parse(g.text)->size(); }},
    {"parse derived", [](const Given& g, int) { return Mesh::parse(g.derived_text)->size(); }},
};

// Operations that visit every device.
const Operation kEach[] = {
    {"construct from a list",
     [](const Given& g, int) {
       return Mesh(scale_axes(g.ranks), g.mesh.rank_map().simplest()).size();
     }},
    {"all device ids",
     [](const Given& g, int) { return std::int64_t{g.permuted.device_ids().to_vector().back()}; }},
    {"all groups",
     [](const Given& g, int) { return std::ssize(g.mesh.groups({"dp"}).to_vectors()); }},
    {"all axis groups",
     [](const Given& g, int) { return std::ssize(AxisGroups(g.mesh, {"tp"}).groups()); }},
    {"all submeshes",
     [](const Given& g, int) {
       std::int64_t total = 0;
       for (const Mesh& each : g.mesh.submeshes({"cp", "tp"})) total += each.size();
       return total;
     }},
    {"all coordinates",
     [](const Given& g, int) {
       std::int64_t total = 0;
       for (std::int64_t id : g.mesh.device_ids()) total += (*g.mesh.coordinate(id))[0];
       return total;
     }},
    {"all slices",
     [](const Given& g, int) {
       return Sharding(g.mesh, P("dp", "tp"), 2).slices(IntVector{1 << 20, 64})[7][0].start;
     }},
    {"distinct slices",
     [](const Given& g, int) {
       return std::int64_t(
           Sharding(g.mesh, P("dp", "tp"), 2).distinct_slices(IntVector{1 << 20, 64}).size());
     }},
    {"tile groups",
     [](const Given& g, int) {
       return std::ssize(tile_groups(Sharding(g.mesh, P("dp", "tp"), 2)).groups);
     }},
    {"tile array",
     [](const Given& g, int) {
       return std::ssize(tile_array(Sharding(g.mesh, P("dp", "tp"), 2)).device_ids);
     }},
    {"same devices, other order",
     [](const Given& g, int) {
       return std::int64_t{
           Sharding(g.mesh, P("dp"), 1).same_placement(Sharding(g.permuted, P("dp"), 1), 1)};
     }},
};

// Microseconds of one run of a cheap operation, or of the only run of one of over 5 ms.
double time_of_run(const Operation& operation, const Given& given) {
  auto many = [&](int times) {
    double begin = now();
    for (int i = 0; i < times; ++i) kept_size = operation.run(given, i % 8);
    return (now() - begin) / times;
  };
  double once = many(1);
  if (once > 5000) return once;
  return std::min(once, many(std::clamp(static_cast<int>(500 / (once + 0.01)), 1, 200)));
}

// Each operation's microseconds for each mesh. All take turns: a shared machine is slower for some
// milliseconds or seconds at a time.
std::vector<std::vector<Least>> times_of_runs(std::span<const Operation> operations,
                                              const std::vector<Given>& givens) {
  constexpr int kTurns = 15;
  constexpr double kSlow = 5000, kSlowest = 100000;  // microseconds: three turns, one turn
  std::vector<std::vector<Least>> times(operations.size(), std::vector<Least>(givens.size()));
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < operations.size(); ++i)
      for (std::size_t j = 0; j < givens.size(); ++j) {
        Least& least = times[i][j];
        int turns = turn == 0 || least.value <= kSlow ? kTurns : least.value <= kSlowest ? 3 : 1;
        if (turn < turns) least.take(time_of_run(operations[i], givens[j]));
      }
  return times;
}

// Microseconds of a pass over as many integers in a permuted order, which writes fresh memory.
// Linear, but for the machine's caches and pages.
double fresh_pass(std::int64_t ranks) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(ranks));
  for (std::int64_t i = 0; i < ranks; ++i)
    order[static_cast<std::size_t>(i)] = (i * 1103515245 + 12345) % ranks;
  return least_of(5, [&] {
    return 1e3 * milliseconds_of([&] {
             std::vector<std::int64_t> to(order.size() * 4);
             for (std::size_t i = 0; i < order.size(); ++i)
               to[4 * i] = order[static_cast<std::size_t>(order[i])];
             kept_size = to[to.size() / 2];
           });
  });
}

// Measures each operation at all sizes, and adds one row: the worst exponent.
void operation_row(Report& report, std::string name, std::string work,
                   std::span<const Operation> operations, const std::vector<Given>& givens,
                   Growth growth) {
  Curve worst{.name = std::move(name),
              .of = "devices",
              .unit = "us",
              .growth = growth,
              .floor_name = "a pass over as many integers"};
  std::vector<double> floors;
  for (const Given& given : givens)
    floors.push_back(growth == Growth::kLinear ? fresh_pass(given.ranks) : 0);
  double exponent = -1;
  std::string slowest;
  double slowest_time = 0;
  const std::vector<std::vector<Least>> times = times_of_runs(operations, givens);
  for (std::size_t of = 0; of < operations.size(); ++of) {
    const Operation& operation = operations[of];
    Curve curve = worst;
    curve.points.clear();
    for (std::size_t i = 0; i < givens.size(); ++i)
      curve.points.push_back({static_cast<double>(givens[i].ranks), times[of][i].value, floors[i]});
    double own = exponent_of(curve, &CurvePoint::value);
    std::printf("  %-24s %6.3f ", operation.name, own);
    for (const CurvePoint& point : curve.points) std::printf(" %12.3f", point.value);
    std::printf("\n");
    if (curve.points.back().value > slowest_time)
      slowest_time = curve.points.back().value, slowest = operation.name;
    if (own <= exponent) continue;
    exponent = own;
    worst.points = curve.points;
    worst.work =
        work + ", the worst of " + std::to_string(operations.size()) + ": " + operation.name;
  }
  worst.note = cat("slowest at the end: ", slowest, " ", static_cast<long>(slowest_time), " us");
  add_curve(report, worst);
}

std::vector<Given> strided_meshes(bool affine, std::int64_t most) {
  std::vector<Given> all;
  for (std::int64_t ranks : kMeshSizes)
    if (ranks <= most)
      all.emplace_back(affine ? Mesh(scale_axes(ranks), RankMap::affine(5, 3, ranks))
                              : Mesh(scale_axes(ranks)));
  return all;
}

std::vector<Given> listed_meshes(std::int64_t most) {
  std::vector<Given> all;
  for (std::int64_t ranks : kMeshSizes) {
    if (ranks > most) continue;
    std::vector<std::int64_t> ids(static_cast<std::size_t>(ranks));
    for (std::int64_t i = 0; i < ranks; ++i)
      ids[static_cast<std::size_t>(i)] = (i * 1103515245 + 12345) % ranks;
    all.emplace_back(Mesh(scale_axes(ranks), std::move(ids)));
  }
  return all;
}

// Device orders on tori of TPUs.
void order_curves(Report& report) {
  Curve torus{.name = "scale.order.torus", .work = "torus_mesh of a v5p pod", .of = "devices"},
      ring{.name = "scale.order.ring", .work = "ring_mesh of a v5p pod", .of = "devices"};
  constexpr const char* kPods[] = {"v5p:8x8x16", "v5p:16x16x16", "v5p:16x32x32", "v5p:32x32x64"};
  constexpr std::int64_t kOuter[] = {16, 64, 256, 1024};
  std::vector<Topology> topologies;
  for (const char* pod : kPods) topologies.push_back(tpu_topology(pod).value());
  constexpr std::size_t kIndices[] = {0, 1, 2, 3};
  auto measured = [&](Curve& curve, auto build) {
    std::vector<double> times = least_of_sizes(
        kIndices, [](std::size_t) { return 60; },
        [&](std::size_t i) {
          std::vector<std::int64_t> shape{kOuter[i], topologies[i].size() / kOuter[i]};
          return milliseconds_of([&] { kept_size = build(topologies[i], shape).size(); });
        });
    for (std::size_t i : kIndices)
      curve.points.push_back({static_cast<double>(topologies[i].size()), times[i]});
  };
  measured(torus, [](const Topology& topology, const std::vector<std::int64_t>& shape) {
    return torus_mesh(topology, shape);
  });
  measured(ring, [](const Topology& topology, const std::vector<std::int64_t>& shape) {
    return ring_mesh(topology, shape).mesh;
  });
  add_curve(report, torus);
  add_curve(report, ring);
}

// Many meshes derived from one root, all of which are alive.
void derived_curves(Report& report) {
  Curve flatten{
      .name = "scale.derived.flatten", .work = "flatten to new names at one root", .of = "names"},
      slices{
          .name = "scale.derived.slice", .work = "slices of one root, all alive", .of = "meshes"};
  constexpr int kCounts[] = {1000, 10000, 100000};
  auto measured = [&](Curve& curve, auto derive) {
    std::vector<double> times = least_of_sizes(
        kCounts, [](int count) { return count > 50000 ? 5 : 15; },
        [&](int count) {
          Mesh root(scale_axes(1 << 20));
          return milliseconds_of([&] { derive(root, count); });
        });
    for (std::size_t i = 0; i < times.size(); ++i)
      curve.points.push_back({static_cast<double>(kCounts[i]), times[i]});
  };
  measured(flatten, [](const Mesh& root, int count) {
    Mesh slice = root.slice({"dp", "tp"});
    for (int i = 0; i < count; ++i) kept_size = slice.flatten(cat("f", i)).size();
  });
  measured(slices, [](const Mesh& root, int count) {
    std::vector<Mesh> alive;
    for (int i = 0; i < count; ++i) alive.push_back(*root.submesh({"cp", "tp"}, i));
    kept_size = std::ssize(alive);
  });
  add_curve(report, flatten);
  add_curve(report, slices);
}

}  // namespace

void mesh_curves(Report& report) {
  std::printf("\n  %-24s %6s  microseconds at 1 k, 16 k, 128 k, 1 M, 16 M, 100 M devices\n",
              "operation", "exp.");
  {
    std::vector<Given> meshes = strided_meshes(false, 100 << 20);
    operation_row(report, "scale.mesh", "operations on ranks 0..n-1", kFlat, meshes, Growth::kFlat);
    operation_row(report, "scale.mesh.text", "texts of ranks 0..n-1", kText, meshes, Growth::kFlat);
    meshes = strided_meshes(true, 100 << 20);
    operation_row(report, "scale.mesh.affine", "operations on ranks 5, 8, 11, ...", kFlat, meshes,
                  Growth::kFlat);
    meshes = strided_meshes(false, 1 << 20);
    operation_row(report, "scale.mesh.each", "passes over all devices", kEach, meshes,
                  Growth::kLinear);
  }
  {
    std::vector<Given> meshes = listed_meshes(1 << 24);
    operation_row(report, "scale.mesh.listed", "operations on permuted ids", kFlat, meshes,
                  Growth::kFlat);
  }
  {
    std::vector<Given> meshes = listed_meshes(1 << 20);
    operation_row(report, "scale.mesh.listed.text", "texts of permuted ids", kText, meshes,
                  Growth::kLinear);
    operation_row(report, "scale.mesh.listed.each", "passes over all devices, permuted ids", kEach,
                  meshes, Growth::kLinear);
  }
  order_curves(report);
  derived_curves(report);
}

}  // namespace meshard::bench
