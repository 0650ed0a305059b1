#include <gtest/gtest.h>

#include <algorithm>

#include "meshard/explain/cost/link_use.h"

namespace meshard {
namespace {

struct GridCase {
  IntVector extent;
  Topology::Wrap wrap;
};

IntVector coords_of(const IntVector& extent, std::int64_t chip) {
  IntVector coords = extent;
  for (std::size_t d = extent.size(); d-- > 0;) {
    coords[d] = chip % extent[d];
    chip /= extent[d];
  }
  return coords;
}

// The links between two chips, in one direction: found by trying every neighbor of every chip.
std::vector<std::vector<int>> links_between(const GridCase& grid) {
  ChipGrid numbers(grid.extent, grid.wrap);
  auto n = static_cast<std::size_t>(numbers.size());
  std::vector<std::vector<int>> links(n, std::vector<int>(n, 0));
  for (std::size_t chip = 0; chip < n; ++chip)
    for (std::size_t d = 0; d < grid.extent.size(); ++d) {
      IntVector next = coords_of(grid.extent, static_cast<std::int64_t>(chip));
      if (++next[d] == grid.extent[d]) {
        if (!grid.wrap[d] || grid.extent[d] <= 2) continue;
        next[d] = 0;
      }
      auto other = static_cast<std::size_t>(numbers.chip(next));
      ++links[chip][other];
      ++links[other][chip];
    }
  return links;
}

// Bytes that must leave the members in a cut, for one byte.
double leaving(CollectiveKind kind, double inside, double all) {
  if (inside == 0 || inside == all) return 0;
  if (kind == CollectiveKind::kAllGather) return inside / all;
  if (kind == CollectiveKind::kReduceScatter) return (all - inside) / all;
  if (kind == CollectiveKind::kAllReduce) return 1;
  return inside * (all - inside) / all;
}

// The largest time over all cuts: every subset of the chips.
double over_all_cuts(const GridCase& grid, CollectiveKind kind, const ChipGroups& groups) {
  std::vector<std::vector<int>> links = links_between(grid);
  double most = 0;
  for (std::uint64_t cut = 1; cut + 1 < std::uint64_t{1} << links.size(); ++cut) {
    double capacity = 0, bytes = 0;
    for (std::size_t a = 0; a < links.size(); ++a)
      for (std::size_t b = 0; b < links.size(); ++b)
        if ((cut >> a & 1) && !(cut >> b & 1)) capacity += links[a][b];
    for (const auto& group : groups) {
      double inside = 0;
      for (std::int64_t chip : group) inside += static_cast<double>(cut >> chip & 1);
      bytes += leaving(kind, inside, static_cast<double>(group.size()));
    }
    most = std::max(most, bytes / capacity);
  }
  return most;
}

// Groups along some directions; the other directions count the groups.
ChipGroups groups_along(const IntVector& extent, const std::vector<bool>& along) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // group, chip
  std::int64_t chips = 1;
  for (std::int64_t size : extent) chips *= size;
  for (std::int64_t chip = 0; chip < chips; ++chip) {
    IntVector coords = coords_of(extent, chip);
    std::int64_t group = 0;
    for (std::size_t d = 0; d < extent.size(); ++d)
      if (!along[d]) group = group * extent[d] + coords[d];
    order.emplace_back(group, chip);
  }
  std::sort(order.begin(), order.end());
  ChipGroups groups;
  for (const auto& [group, chip] : order) {
    if (group == std::ssize(groups)) groups.emplace_back();
    groups.back().push_back(chip);
  }
  return groups;
}

constexpr CollectiveKind kGroupKinds[] = {CollectiveKind::kAllGather,
                                          CollectiveKind::kReduceScatter,
                                          CollectiveKind::kAllReduce, CollectiveKind::kAllToAll};

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double largest_cut(const ChipGrid& grid, const std::vector<double>& loads) {
  return largest({loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(grid.num_cuts())});
}

// Groups along whole directions: the boxes contain a cut that no other cut exceeds.
TEST(ChipGrid, BoxesFindTheTightestCutOfRegularGroups) {
  const GridCase cases[] = {{{4}, {false}},           {{5}, {true}},
                            {{3, 4}, {false, false}}, {{4, 3}, {true, false}},
                            {{3, 3}, {true, true}},   {{2, 2, 3}, {false, false, true}}};
  for (const GridCase& each : cases) {
    ChipGrid grid(each.extent, each.wrap);
    for (unsigned mask = 1; mask < 1u << each.extent.size(); ++mask) {
      std::vector<bool> along;
      for (std::size_t d = 0; d < each.extent.size(); ++d) along.push_back(mask >> d & 1);
      ChipGroups groups = groups_along(each.extent, along);
      for (CollectiveKind kind : kGroupKinds)
        EXPECT_NEAR(largest_cut(grid, grid.loads(kind, groups)), over_all_cuts(each, kind, groups),
                    1e-9)
            << to_string(kind) << " " << each.extent.size() << " directions, along " << mask;
    }
  }
}

// Groups of any chips: no box exceeds the largest of all cuts.
TEST(ChipGrid, BoxesAreCutsOfAnyGroups) {
  const GridCase grids[] = {{{3, 3}, {true, false}}, {{2, 4}, {false, true}}};
  const ChipGroups groups[] = {{{0, 4, 5}, {1, 2, 7}}, {{0, 7}, {3, 4}, {1, 2, 5, 6}}, {{3, 6, 1}}};
  for (const GridCase& each : grids) {
    ChipGrid grid(each.extent, each.wrap);
    for (const ChipGroups& some : groups)
      for (CollectiveKind kind : kGroupKinds) {
        double cut = largest_cut(grid, grid.loads(kind, some));
        EXPECT_GT(cut, 0);
        EXPECT_LE(cut, over_all_cuts(each, kind, some) + 1e-9) << to_string(kind);
      }
  }
}

// Rings and lines of n chips, with links of one byte per second.
TEST(ChipGrid, RingsAndLines) {
  for (std::int64_t n : {4, 8}) {
    auto size = static_cast<double>(n);
    ChipGrid ring({n}, {true}), line({n}, {false});
    ChipGroups all = groups_along({n}, {true});
    auto bound = [&](const ChipGrid& grid, CollectiveKind kind) {
      return largest(grid.loads(kind, all));
    };
    // A ring algorithm in both directions takes as long.
    EXPECT_DOUBLE_EQ(bound(ring, CollectiveKind::kAllGather), (size - 1) / size / 2);
    EXPECT_DOUBLE_EQ(bound(ring, CollectiveKind::kReduceScatter), (size - 1) / size / 2);
    EXPECT_DOUBLE_EQ(bound(ring, CollectiveKind::kAllReduce), (size - 1) / size);
    EXPECT_DOUBLE_EQ(bound(ring, CollectiveKind::kAllToAll), size / 8);
    // On a line, all but its own part passes the only link of the first chip; an all-reduce sums
    // towards the last chip and sends the result back, both in one pass.
    EXPECT_DOUBLE_EQ(bound(line, CollectiveKind::kAllGather), (size - 1) / size);
    EXPECT_DOUBLE_EQ(bound(line, CollectiveKind::kReduceScatter), (size - 1) / size);
    EXPECT_DOUBLE_EQ(bound(line, CollectiveKind::kAllReduce), 1);
    EXPECT_DOUBLE_EQ(bound(line, CollectiveKind::kAllToAll), size / 4);
  }
}

// Every sum over 4x4 chips takes 15 messages, and 15 more to distribute it, over 2 * 24 links of an
// open grid or 64 of a closed one.
TEST(ChipGrid, AnAllReduceUsesAllLinks) {
  ChipGroups all = groups_along({4, 4}, {true, true});
  EXPECT_DOUBLE_EQ(largest(ChipGrid({4, 4}, {false, false}).loads(CollectiveKind::kAllReduce, all)),
                   30 / 48.0);
  EXPECT_DOUBLE_EQ(largest(ChipGrid({4, 4}, {true, true}).loads(CollectiveKind::kAllReduce, all)),
                   30 / 64.0);
}

TEST(ChipGrid, ABroadcastLeavesItsSource) {
  // From the end of a line of 4, all bytes pass the first link; from the middle as well.
  ChipGrid line({4}, {false});
  EXPECT_DOUBLE_EQ(largest(line.loads(CollectiveKind::kCollectiveBroadcast, {{0, 1, 2, 3}})), 1);
  ChipGrid ring({4}, {true});
  // Three links for each byte, of 8: but the two links of the source carry it once.
  EXPECT_DOUBLE_EQ(largest(ring.loads(CollectiveKind::kCollectiveBroadcast, {{0, 1, 2, 3}})), 0.5);
}

TEST(ChipGrid, PermutationsTakeShortestWays) {
  ChipGrid ring({6}, {true}), line({6}, {false});
  std::vector<std::pair<std::int64_t, std::int64_t>> by_one, by_three, around;
  for (std::int64_t i = 0; i < 6; ++i) {
    by_one.emplace_back(i, (i + 1) % 6);
    by_three.emplace_back(i, (i + 3) % 6);
  }
  EXPECT_DOUBLE_EQ(largest(ring.permutation_loads(by_one)), 1);
  EXPECT_DOUBLE_EQ(largest(line.permutation_loads(by_one)), 1);  // the last message goes back alone
  // Six messages over three links each, half of them each way, on six links each way.
  EXPECT_DOUBLE_EQ(largest(ring.permutation_loads(by_three)), 1.5);
  // Three messages each way pass the middle of the line.
  EXPECT_DOUBLE_EQ(largest(line.permutation_loads(by_three)), 3);
  EXPECT_DOUBLE_EQ(largest(ring.permutation_loads({{2, 2}})), 0);
  // The load of each direction is apart: there and back at the same time.
  std::vector<double> sum = ring.permutation_loads(by_one);
  std::vector<std::pair<std::int64_t, std::int64_t>> back;
  for (const auto& [from, to] : by_one) back.emplace_back(to, from);
  std::vector<double> other = ring.permutation_loads(back);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  EXPECT_DOUBLE_EQ(largest(sum), 1);
}

// Large grids examine fewer boxes, which still contain the tight ones of a whole torus.
TEST(ChipGrid, LargeGrids) {
  IntVector extent{16, 20, 28};
  ChipGrid grid(extent, {true, true, true});
  ChipGroups all = groups_along(extent, {true, true, true});
  double n = 16 * 20 * 28;
  EXPECT_DOUBLE_EQ(largest(grid.loads(CollectiveKind::kAllGather, all)), (n - 1) / n / 6);
  // A half of the chips sends to the other half over 2 * 16 * 20 links.
  EXPECT_DOUBLE_EQ(largest(grid.loads(CollectiveKind::kAllToAll, all)), n / 4 / (2 * 16 * 20));
  EXPECT_DOUBLE_EQ(grid.links_per_chip(), 6);
}

TEST(ChipGrid, DirectionsOfTwoChipsHaveOneLink) {
  ChipGrid grid({2, 1}, {true, true});
  EXPECT_DOUBLE_EQ(grid.links_per_chip(), 1);
  EXPECT_DOUBLE_EQ(largest(grid.loads(CollectiveKind::kAllGather, {{0, 1}})), 0.5);
  EXPECT_DOUBLE_EQ(largest(ChipGrid({1}, {false}).loads(CollectiveKind::kAllGather, {{0, 0}})), 0);
}

}  // namespace
}  // namespace meshard
