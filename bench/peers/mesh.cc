// Meshes and layouts beside PyTorch's.
#include "meshard/mesh/mesh.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/contest.h"
#include "bench/timing.h"
#include "meshard/layout/algebra.h"
#include "meshard/mesh/concatenate.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kContestRanks = 1 << 20;

volatile std::int64_t contest_kept;

struct Operation {
  const char* name;
  const char* work;
  int ours, theirs;  // consecutive calls in one turn
  std::function<void()> call;
};

void compare_operations(Contest& contest, const std::string& group,
                        const std::vector<Operation>& operations, int turns) {
  std::unique_ptr<Peer> torch = contest.start("torch");
  for (const Operation& each : operations)
    contest.attempt(group + "." + each.name, [&] {
      nlohmann::json with{{"operation", each.name}, {"times", each.theirs}};
      if (group == "mesh") with["ranks"] = kContestRanks;
      PeerWork theirs(*torch, group, with);
      std::vector<double> seconds =
          fastest_in_turns(turns, {[&] {
                                     double begin = now();
                                     for (int i = 0; i < each.ours; ++i) each.call();
                                     return (now() - begin) / each.ours / 1e6;
                                   },
                                   [&] { return theirs.run(); }});
      add_figures(contest, "torch",
                  {.name = group + "." + each.name,
                   .work = each.work,
                   .unit = "us",
                   .ours = seconds[0] * 1e6,
                   .theirs = seconds[1] * 1e6});
    });
}

}  // namespace

void mesh_contest(Contest& contest) {
  if (!contest.has("torch")) return;
  auto axes = [] {
    return std::vector<MeshAxis>{{"dp", kContestRanks / 64}, {"cp", 8}, {"tp", 8}};
  };
  std::vector<std::int64_t> ids(kContestRanks);
  for (std::int64_t i = 0; i < kContestRanks; ++i)
    ids[static_cast<std::size_t>(i)] = (i * 1103515245 + 12345) % kContestRanks;
  const Mesh mesh(axes());
  const Mesh tp = mesh.slice("tp"), dp = mesh.slice("dp");
  int flat = 0;
  // Each flatten adds an entry to the root, as PyTorch's does.
  auto flatten = [&flat](Mesh slice) {
    return [&flat, slice] { contest_kept = slice.flatten(cat("f", ++flat)).size(); };
  };
  compare_operations(
      contest, "mesh",
      {{"chain", "construct, slice (dp, tp), flatten", 200, 1,
        [&] {
          contest_kept = Mesh(axes()).slice({"dp", "tp"}).flatten("f").size();
        }},
       {"listed", "construct from a list of permuted ids", 1, 1,
        [&] { contest_kept = Mesh(axes(), std::vector(ids)).size(); }},
       {"slice_tp", "slice tp", 500, 1, [&] { contest_kept = mesh.slice("tp").size(); }},
       {"slice_dp_tp", "slice dp, tp", 500, 1,
        [&] {
          contest_kept = mesh.slice({"dp", "tp"}).size();
        }},
       {"flatten_dp_cp", "flatten the slice dp, cp under a new name", 200, 1,
        flatten(mesh.slice({"dp", "cp"}))},
       {"flatten_dp_tp", "flatten the slice dp, tp under a new name", 200, 1,
        flatten(mesh.slice({"dp", "tp"}))},
       {"unflatten", "unflatten dp into (2, n/128)", 500, 1,
        [&] {
          contest_kept = mesh.unflatten("dp", {{"a", 2}, {"b", kContestRanks / 128}}).size();
        }},
       {"concatenate", "concatenate tp, dp", 500, 1,
        [&] {
          contest_kept = concatenate({tp, dp}).size();
        }}},
      7);
}

void layout_contest(Contest& contest) {
  if (!contest.has("torch")) return;
  const Layout four({16, 8, 8, 16}, {1024, 128, 16, 1}), two({16, 16}, {1024, 1});
  const Layout inner(IntTuple{4, 4, 16}), left({4, 2}, {1, 16});
  const Layout nested({{2, 2, 2}, {2, 2, 2}}, {{1, 16, 4}, {8, 2, 32}});
  const Layout line(IntTuple(64)), tile(IntTuple(8));
  compare_operations(
      contest, "layout",
      {{"coalesce", "coalesce 4 modes", 2000, 1000, [&] { contest_kept = coalesce(four).size(); }},
       {"composition", "(16,16):(1024,1) o (4,4,16)", 2000, 1000,
        [&] { contest_kept = composition(two, inner)->size(); }},
       {"complement", "complement of 2 modes in 16384", 2000, 1000,
        [&] { contest_kept = complement(two, 16384)->size(); }},
       {"right_inverse", "right inverse of 6 nested modes", 2000, 1000,
        [&] { contest_kept = right_inverse(nested).size(); }},
       {"left_inverse", "left inverse of 2 modes", 2000, 1000,
        [&] { contest_kept = left_inverse(left)->size(); }},
       {"logical_divide", "64 divided by 8", 2000, 1000,
        [&] { contest_kept = logical_divide(line, tile)->size(); }},
       {"value", "the value at index 37 of 6 nested modes", 2000, 1000,
        [&] { contest_kept = nested(37); }}},
      15);
}

}  // namespace meshard::bench
