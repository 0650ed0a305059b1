#include "meshard/explain/cost/chip_grid.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace meshard {
namespace {

// Boxes are examined one chip at a time. Above this product, only the corner, the first half and
// the whole of each direction are.
constexpr double kMostTests = 2e6;

}  // namespace

ChipGrid::ChipGrid(IntVector extent, Topology::Wrap wrap)
    : extent_(std::move(extent)), wrap_(std::move(wrap)) {
  stride_ = extent_;
  for (std::size_t d = extent_.size(); d-- > 0;) {
    stride_[d] = size_;
    size_ *= extent_[d];
    wrap_[d] = wrap_[d] && extent_[d] > 2;
  }
  double tests = static_cast<double>(size_);
  for (std::size_t d = 0; d < extent_.size(); ++d)
    tests *= static_cast<double>(intervals(d, true).size());
  for (std::size_t d = 0; d < extent_.size(); ++d)
    intervals_.push_back(intervals(d, tests <= kMostTests));
  add_boxes();
}

std::int64_t ChipGrid::chip(const IntVector& coords) const {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < extent_.size(); ++d) number += coords[d] * stride_[d];
  return number;
}

// The whole direction first, then parts of it.
std::vector<ChipGrid::Interval> ChipGrid::intervals(std::size_t d, bool all) const {
  std::int64_t n = extent_[d];
  std::vector<Interval> made{{0, n, 0}};
  const auto add = [&](std::int64_t first, std::int64_t count) {
    if (count < 1 || count >= n) return;
    for (const Interval& one : made)
      if (one.first == first && one.count == count) return;
    int ends = wrap_[d] ? 2 : (first > 0 ? 1 : 0) + (first + count < n ? 1 : 0);
    made.push_back({first, count, ends});
  };
  if (!all) {
    add(0, 1);
    add(0, n / 2);
    return made;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    add(0, i);
    add(i, 1);
    if (!wrap_[d]) add(i, n - i);
  }
  return made;
}

void ChipGrid::add_boxes() {
  std::vector<std::size_t> at(extent_.size(), 0);
  while (true) {
    std::size_t d = 0;
    while (d < at.size() && ++at[d] == intervals_[d].size()) at[d++] = 0;
    if (d == at.size()) return;
    Box box{at, 0};
    double chips = 1;
    for (std::size_t e = 0; e < at.size(); ++e)
      chips *= static_cast<double>(intervals_[e][at[e]].count);
    for (std::size_t e = 0; e < at.size(); ++e) {
      const Interval& one = intervals_[e][at[e]];
      box.links += one.ends * chips / static_cast<double>(one.count);
    }
    boxes_.push_back(std::move(box));
  }
}

bool ChipGrid::inside(const Box& box, std::int64_t chip) const {
  for (std::size_t d = 0; d < extent_.size(); ++d) {
    const Interval& one = intervals_[d][box.intervals[d]];
    std::int64_t place = coordinate(chip, d);
    if (place < one.first || place >= one.first + one.count) return false;
  }
  return true;
}

double ChipGrid::apart(std::size_t d, std::int64_t from, std::int64_t to) const {
  std::int64_t distance = std::abs(from - to);
  if (wrap_[d]) distance = std::min(distance, extent_[d] - distance);
  return static_cast<double>(distance);
}

// The links of a direction, counting both ways of each.
double ChipGrid::links_of(std::size_t d) const {
  std::int64_t steps = wrap_[d] ? extent_[d] : extent_[d] - 1;
  std::int64_t lines = size_ / extent_[d];
  return 2.0 * static_cast<double>(steps) * static_cast<double>(lines);
}

double ChipGrid::links_per_chip() const {
  double links = 0;
  for (std::size_t d = 0; d < extent_.size(); ++d) links += links_of(d);
  return links / static_cast<double>(size_);
}

void ChipGrid::add_cut_loads(CollectiveKind kind, const std::vector<std::int64_t>& group,
                             std::vector<double>& loads) const {
  auto n = static_cast<double>(group.size());
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    auto k = static_cast<double>(std::count_if(
        group.begin(), group.end(), [&](std::int64_t chip) { return inside(boxes_[i], chip); }));
    if (k == 0 || k == n) continue;
    double leave = 0, enter = 0;
    switch (kind) {
      case CollectiveKind::kAllGather: leave = k / n, enter = (n - k) / n; break;
      case CollectiveKind::kReduceScatter: leave = (n - k) / n, enter = k / n; break;
      case CollectiveKind::kAllReduce: leave = enter = 1; break;
      case CollectiveKind::kAllToAll:
      case CollectiveKind::kRaggedAllToAll: leave = enter = k * (n - k) / n; break;
      case CollectiveKind::kCollectiveBroadcast:
        (inside(boxes_[i], group.front()) ? leave : enter) = 1;
        break;
      default: break;
    }
    loads[2 * i] += leave / boxes_[i].links;
    loads[2 * i + 1] += enter / boxes_[i].links;
  }
}

// The fewest links, along the directions of a set, that connect the members.
double ChipGrid::connecting(const std::vector<std::int64_t>& group, std::size_t set) const {
  std::unordered_set<std::int64_t> places;
  for (std::int64_t chip : group) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < extent_.size(); ++d)
      if (set >> d & 1) place = place * extent_[d] + coordinate(chip, d);
    places.insert(place);
  }
  return static_cast<double>(places.size()) - 1;
}

// The sum of the distances between any two members, along one direction.
double ChipGrid::distances(const std::vector<std::int64_t>& group, std::size_t d) const {
  std::vector<double> members(static_cast<std::size_t>(extent_[d]), 0);
  for (std::int64_t chip : group) ++members[static_cast<std::size_t>(coordinate(chip, d))];
  double sum = 0;
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t j = 0; j < members.size(); ++j)
      sum += members[i] * members[j] *
             apart(d, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  return sum;
}

void ChipGrid::add_set_loads(CollectiveKind kind, const std::vector<std::int64_t>& group,
                             std::vector<double>& loads) const {
  bool exchange = is_exchange(kind);
  std::vector<double> between;
  for (std::size_t d = 0; exchange && d < extent_.size(); ++d)
    between.push_back(distances(group, d));
  for (std::size_t set = 1; set < std::size_t{1} << extent_.size(); ++set) {
    double links = 0, passed = 0;
    for (std::size_t d = 0; d < extent_.size(); ++d) {
      if (!(set >> d & 1)) continue;
      links += links_of(d);
      if (exchange) passed += between[d] / static_cast<double>(group.size());
    }
    if (links == 0) continue;
    if (!exchange) passed = (kind == CollectiveKind::kAllReduce ? 2 : 1) * connecting(group, set);
    loads[num_cuts() + set] += passed / links;
  }
}

std::vector<double> ChipGrid::loads(CollectiveKind kind, const ChipGroups& groups) const {
  std::vector<double> loads(num_loads(), 0);
  for (const std::vector<std::int64_t>& group : groups) {
    add_cut_loads(kind, group, loads);
    add_set_loads(kind, group, loads);
  }
  return loads;
}

std::vector<double> ChipGrid::permutation_loads(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const {
  std::vector<double> loads(num_loads(), 0);
  for (const auto& [from, to] : pairs)
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      bool starts = inside(boxes_[i], from), ends = inside(boxes_[i], to);
      if (starts != ends) loads[2 * i + (starts ? 0 : 1)] += 1 / boxes_[i].links;
    }
  for (std::size_t d = 0; d < extent_.size(); ++d) {
    std::int64_t n = extent_[d];
    std::int64_t lines = size_ / n;
    auto across = static_cast<double>(lines);  // links between two adjacent places
    // Step i leads from place i to place i + 1: forward first, then backward.
    std::vector<double> forward(static_cast<std::size_t>(n), 0), backward = forward;
    for (const auto& [from, to] : pairs) {
      std::int64_t start = coordinate(from, d), end = coordinate(to, d), up = end - start;
      if (wrap_[d]) up = (up + n) % n;
      std::int64_t down = wrap_[d] ? n - up : -up;
      if (start == end) continue;
      bool goes_up = wrap_[d] ? up <= down : up > 0, goes_down = wrap_[d] ? down <= up : up < 0;
      double share = (goes_up && goes_down ? 0.5 : 1) / across;
      for (std::int64_t i = 0; goes_up && i < up; ++i)
        forward[static_cast<std::size_t>((start + i) % n)] += share;
      for (std::int64_t i = 0; goes_down && i < down; ++i)
        backward[static_cast<std::size_t>((end + i) % n)] += share;
    }
    loads.insert(loads.end(), forward.begin(), forward.end());
    loads.insert(loads.end(), backward.begin(), backward.end());
  }
  return loads;
}

}  // namespace meshard
