// Meshes of many devices, and their layouts. No cost may grow with the number of devices, except
// for one pass over a list of ids.
#include "meshard/mesh/mesh.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/allocated.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/layout/algebra.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/device_groups.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kRanks = 1 << 20;
constexpr int kTurns = 40;

volatile std::int64_t observed;

std::vector<MeshAxis> mesh_axes(std::int64_t ranks) {
  return {{"dp", ranks / 64}, {"cp", 8}, {"tp", 8}};
}

// A permutation that strides cannot express.
std::vector<std::int64_t> permuted_ids(std::int64_t ranks) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(ranks));
  for (std::int64_t i = 0; i < ranks; ++i)
    ids[static_cast<std::size_t>(i)] = (i * 1103515245 + 12345) % ranks;
  return ids;
}

// The minimum of turns of `once`, at least kTurns and for at least kSpread: an operation takes so
// little that all turns could fall into a moment in which another machine uses the same core.
template <class Once>
double least_turn(Once&& once) {
  constexpr double kSpread = 1e6;  // microseconds
  Least least;
  once();  // a warm-up
  double begin = now();
  for (int turn = 0; turn < kTurns || now() - begin < kSpread; ++turn) least.take(once());
  return least.value;
}

// Microseconds of one f(), from `times` consecutive calls; the minimum of several turns.
template <class F>
double least_each(int times, F&& f) {
  return least_turn([&] {
    double begin = now();
    for (int i = 0; i < times; ++i) f(i);
    return (now() - begin) / times;
  });
}

// The same for f(a, i), where `a` is constructed for every turn and not included in the time.
template <class Make, class F>
double least_each_of(int times, Make&& make, F&& f) {
  return least_turn([&] {
    auto made = make();
    double begin = now();
    for (int i = 0; i < times; ++i) f(made, i);
    return (now() - begin) / times;
  });
}

// Constructs, slices and flattens a mesh: microseconds of one chain, from 200 consecutive ones.
double chain_once(std::int64_t ranks, std::int64_t first, std::int64_t step) {
  constexpr int kTimes = 200;
  double begin = now();
  for (int i = 0; i < kTimes; ++i) {
    Mesh mesh(mesh_axes(ranks), RankMap::affine(first, step, ranks));
    observed = mesh.slice({"dp", "tp"}).flatten("f").size();
  }
  return (now() - begin) / kTimes;
}

double chain(std::int64_t ranks, std::int64_t first, std::int64_t step) {
  return least_turn([&] { return chain_once(ranks, first, step); });
}

// The pass that every list of ids needs: computes its inverse.
double invert(const std::vector<std::int64_t>& ids) {
  double begin = now();
  std::vector<std::int64_t> position(ids.size(), -1);
  for (std::size_t i = 0; i < ids.size(); ++i)
    position[static_cast<std::size_t>(ids[i])] = static_cast<std::int64_t>(i);
  observed = position[ids.size() / 2];
  return (now() - begin) / 1e3;
}

void add_time(Report& report, std::string name, std::string work, double ours, double bound,
              std::string goal) {
  report.add({.name = std::move(name),
              .work = std::move(work),
              .unit = "us",
              .ours = ours,
              .goal = std::move(goal),
              .bound = bound});
}

void chain_rows(Report& report) {
  const std::string work = ", 1,048,576 ranks: construct, slice (dp, tp), flatten";
  const std::string goal = "at most 20 us";
  add_time(report, "mesh.chain", "ranks 0..n-1" + work, chain(kRanks, 0, 1), 20, goal);
  add_time(report, "mesh.chain.affine", "ranks 5, 8, 11, ..." + work, chain(kRanks, 5, 3), 20,
           goal);

  const std::vector<std::int64_t> ids = permuted_ids(kRanks);
  auto [ours, floor] = in_turns(
      7,
      [&] {
        std::vector<std::int64_t> given = ids;
        double begin = now();
        observed = Mesh(mesh_axes(kRanks), std::move(given)).size();
        return (now() - begin) / 1e3;
      },
      [&] { return invert(ids); });
  report.add({.name = "mesh.listed",
              .work = "construct from a list of 1,048,576 permuted ids",
              .unit = "ms",
              .ours = ours,
              .floor = floor,
              .floor_name = "one pass that inverts the list",
              .goal = "at most 4 times the pass",
              .bound = 4 * floor});
  Mesh listed(mesh_axes(kRanks), ids);
  add_time(report, "mesh.chain.listed",
           "the listed mesh: slice (dp, tp), flatten, without the pass",
           least_each(200,
                      [&](int) {
                        observed = listed.slice({"dp", "tp"}).flatten("f").size();
                      }),
           20, goal);
}

void operation_rows(Report& report) {
  const std::string goal = "at most 20 us";
  auto make = [] { return Mesh(mesh_axes(kRanks)); };
  const Mesh mesh = make();
  add_time(report, "mesh.slice.tp", "slice tp",
           least_each(500, [&](int) { observed = mesh.slice("tp").size(); }), 20, goal);
  add_time(report, "mesh.slice.dp_tp", "slice dp, tp",
           least_each(500,
                      [&](int) {
                        observed = mesh.slice({"dp", "tp"}).size();
                      }),
           20, goal);
  static const char* const kNames[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
  for (bool adjacent : {true, false}) {
    double time = least_each_of(
        8,
        [&] {
          return adjacent ? make().slice({"dp", "cp"}) : make().slice({"dp", "tp"});
        },
        [](const Mesh& slice, int i) { observed = slice.flatten(kNames[i]).size(); });
    add_time(report, adjacent ? "mesh.flatten.dp_cp" : "mesh.flatten.dp_tp",
             adjacent ? "flatten the slice dp, cp under a new name"
                      : "flatten the slice dp, tp under a new name",
             time, 20, goal);
  }
  add_time(report, "mesh.unflatten", "unflatten dp into (2, n/128)",
           least_each(500,
                      [&](int) {
                        observed = mesh.unflatten("dp", {{"a", 2}, {"b", kRanks / 128}}).size();
                      }),
           20, goal);
  const Mesh tp = mesh.slice("tp"), dp = mesh.slice("dp");
  add_time(report, "mesh.concatenate", "concatenate tp, dp",
           least_each(500,
                      [&](int) {
                        observed = concatenate({tp, dp}).size();
                      }),
           20, goal);
  add_time(report, "mesh.submesh", "submesh (cp, tp) of one device",
           least_each(500,
                      [&](int i) {
                        observed = mesh.submesh({"cp", "tp"}, i * 2001)->size();
                      }),
           20, goal);
}

void question_rows(Report& report) {
  const Mesh mesh(mesh_axes(kRanks)), listed(mesh_axes(kRanks), permuted_ids(kRanks));
  const Mesh flat = mesh.slice({"dp", "tp"}).flatten("f");
  const AxisList tp = {"tp"};
  // The list of ids and its inverse have 16 MB. The test uses nearby devices, which stay in the
  // cache, as they do for a program that queries one device.
  auto ask = [](const Mesh& asked) {
    return least_each(2000, [&](int i) { observed = (*asked.coordinate(777777 + i % 64))[0]; });
  };
  auto ask_group = [&](const Mesh& asked, const AxisList& axes) {
    return least_each(2000, [&](int i) { observed = asked.group(axes, 777777 + i % 64)->size(); });
  };
  const std::string goal = "at most 0.1 us";
  add_time(report, "mesh.coordinate", "coordinate of a device", ask(mesh), 0.1, goal);
  add_time(report, "mesh.coordinate.listed", "the same, listed ids", ask(listed), 0.1, goal);
  add_time(report, "mesh.coordinate.flat", "the same, an axis of two modes", ask(flat), 0.1, goal);
  add_time(report, "mesh.group", "group of a device along tp", ask_group(mesh, tp), 0.1, goal);
  add_time(report, "mesh.group.listed", "the same, listed ids", ask_group(listed, tp), 0.1, goal);
  add_time(report, "mesh.group.flat", "the same, an axis of two modes", ask_group(flat, {"f"}), 0.1,
           goal);
}

// The largest heap memory of a derived mesh, and that of a root, for a number of ranks.
struct Bytes {
  double derived, root;
};
Bytes bytes_at(std::int64_t ranks) {
  const Mesh mesh(mesh_axes(ranks));
  const Mesh tp = mesh.slice("tp"), dp = mesh.slice("dp"), dp_tp = mesh.slice({"dp", "tp"});
  double derived = 0;
  auto take = [&](auto make) { derived = std::max(derived, bytes_each(1000, make)); };
  take([&](int) { return mesh.slice({"dp", "tp"}); });
  take(
      [&](int i) { return dp_tp.flatten("f" + std::to_string(i)); });  // plus its entry in the root
  take([&](int) { return mesh.unflatten("dp", {{"a", 2}, {"b", ranks / 128}}); });
  take([&](int) { return concatenate({tp, dp}); });
  take([&](int i) { return *mesh.submesh({"cp", "tp"}, i % 64); });
  return {derived, bytes_each(1000, [&](int) { return Mesh(mesh_axes(ranks)); })};
}

void scale_rows(Report& report) {
  const std::int64_t kCurve[] = {1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24, 100 << 20};
  std::printf("\n%14s %12s %12s %12s %14s %12s\n", "ranks", "chain us", "coordinate", "group",
              "bytes derived", "bytes root");
  constexpr std::size_t kSizes = std::size(kCurve);
  Least times[kSizes];  // in turns, so that other load on the machine affects all alike
  for (int turn = 0; turn <= kTurns; ++turn)
    for (std::size_t i = 0; i < kSizes; ++i) times[i].take(chain_once(kCurve[i], 0, 1));
  double fastest = 1e300, slowest = 0;
  Bytes smallest{}, largest{};
  for (std::size_t i = 0; i < kSizes; ++i) {
    fastest = std::min(fastest, times[i].value);
    slowest = std::max(slowest, times[i].value);
    const Mesh mesh(mesh_axes(kCurve[i]));
    const AxisList tp = {"tp"};
    double coordinate =
        least_each(2000, [&](int k) { observed = (*mesh.coordinate(700 + k % 64))[0]; });
    double group =
        least_each(2000, [&](int k) { observed = mesh.group(tp, 700 + k % 64)->size(); });
    largest = bytes_at(kCurve[i]);
    if (i == 0) smallest = largest;
    std::printf("%14lld %12.3f %12.4f %12.4f %14.0f %12.0f\n", static_cast<long long>(kCurve[i]),
                times[i].value, coordinate, group, largest.derived, largest.root);
  }
  std::printf("\n");
  report.add({.name = "mesh.scale",
              .work = "construct, slice, flatten: the slowest of 1 k to 100 M ranks by the fastest",
              .unit = "times",
              .ours = slowest / fastest,
              .goal = "at most 1.5: flat",
              .bound = 1.5});
  auto memory_row = [&](const char* name, const char* work, double small, double large) {
    report.add({.name = name,
                .work = work,
                .unit = "bytes",
                .ours = large,
                .goal = "at most 1024, the same as at 1 k",
                .bound = 1024,
                .also = large < 1.05 * small});
  };
  memory_row("mesh.bytes.derived",
             "heap of the largest derived mesh, with its entry at the root, 100 M",
             smallest.derived, largest.derived);
  memory_row("mesh.bytes.root", "heap of a root of 100 M ranks", smallest.root, largest.root);
}

}  // namespace

void mesh_rows(Report& report) {
  chain_rows(report);
  operation_rows(report);
  question_rows(report);
  scale_rows(report);
}

void layout_rows(Report& report) {
  const Layout four = Layout({16, 8, 8, 16}, {1024, 128, 16, 1}), two = Layout({16, 16}, {1024, 1});
  const Layout inner = Layout(IntTuple{4, 4, 16}), left = Layout({4, 2}, {1, 16});
  const Layout nested = Layout({{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}});
  const Layout line(IntTuple(64)), tile(IntTuple(8));
  auto add = [&](const char* name, const char* work, double bound, const char* goal, auto f) {
    add_time(report, name, work, least_each(2000, f), bound, goal);
  };
  add("layout.coalesce", "coalesce 4 modes", 0.05, "at most 0.05 us",
      [&](int) { observed = coalesce(four).size(); });
  add("layout.composition", "(16,16):(1024,1) o (4,4,16)", 0.3, "at most 0.3 us",
      [&](int) { observed = composition(two, inner)->size(); });
  add("layout.complement", "complement of 2 modes in 16384", 0.1, "at most 0.1 us",
      [&](int) { observed = complement(two, 16384)->size(); });
  add("layout.right_inverse", "right inverse of 6 nested modes", 0.32, "50 times PyTorch's 15.9 us",
      [&](int) { observed = right_inverse(nested).size(); });
  add("layout.left_inverse", "left inverse of 2 modes", 0.39, "50 times PyTorch's 19.6 us",
      [&](int) { observed = left_inverse(left)->size(); });
  add("layout.logical_divide", "64 divided by 8", 0.33, "50 times PyTorch's 16.7 us",
      [&](int) { observed = logical_divide(line, tile)->size(); });
  add("layout.value", "the value at index 37 of 6 nested modes", 0.14, "50 times PyTorch's 7.1 us",
      [&](int) { observed = nested(37); });
}

}  // namespace meshard::bench
