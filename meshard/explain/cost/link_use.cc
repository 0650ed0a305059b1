#include "meshard/explain/cost/link_use.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/mesh/device_groups.h"

namespace meshard {
namespace {

// Boxes are examined one chip at a time. Above this product, only the corner, the first half and
// the whole of each direction are.
constexpr double kMostTests = 2e6;

// Limits of groups and members that are examined; meshes are regular, so a few are representative.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kMostMembers = 4096;

// How many times a ring collective over n devices sends its bytes over one device's links.
double ring_factor(CollectiveKind kind, double n) {
  double part = (n - 1) / n;
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * part;
    case CollectiveKind::kCollectiveBroadcast: return n > 1 ? 1 : 0;
    default: return part;
  }
}

// The messages that a device sends one after the other in a ring of n.
double ring_steps(CollectiveKind kind, double n) {
  return kind == CollectiveKind::kAllReduce ? 2 * (n - 1) : n - 1;
}

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
    auto k = static_cast<double>(
        std::ranges::count_if(group, [&](std::int64_t chip) { return inside(boxes_[i], chip); }));
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

LinkModel::LinkModel(HardwareFigures figures, std::optional<Mesh> mesh,
                     std::optional<Topology> topology, std::optional<ProcessMap> processes,
                     const LinkOptions& links)
    : figures_(std::move(figures)), mesh_(std::move(mesh)) {
  if (links.between_devices) {
    figures_.link_bandwidth = links.between_devices->bandwidth;
    figures_.switch_adds = figures_.direct_links = false;
    device_latency_ = links.between_devices->latency;
    if (figures_.link_name.empty()) figures_.link_name = "device link";
    figures_.sources.push_back(cat("given: links of a device ", *links.between_devices));
  }
  if (links.between_processes) {
    processes_ = std::move(processes);
    sharing_ = static_cast<double>(processes_->most_devices(mesh_));
    figures_.network_bandwidth = links.between_processes->bandwidth;
    network_latency_ = links.between_processes->latency;
    figures_.network_name = "process link";
    figures_.sources.push_back(cat("given: link of a process ", *links.between_processes));
  }
  if (!topology) return;
  std::set<std::int64_t> granules;
  std::map<std::pair<std::int64_t, std::int64_t>, double> on_chip;
  bool by_process = !topology->has_coords();
  IntVector low;
  if (!by_process && figures_.links > 0) {
    low = box_of(topology->devices()).low;
    const IntVector& extent = topology->extent();
    num_directions_ = extent.size();
    Topology::Wrap closed;
    for (std::size_t d = 0; d < extent.size(); ++d) closed.push_back(true);
    grid_.emplace(extent, topology->wrap().value_or(closed));
  }
  for (const DeviceAttributes& device : topology->devices()) {
    Place place{.granule = device.slice_index.value_or(by_process ? device.process_index : 0),
                .slice = device.slice_index.value_or(0),
                .chip = 0,
                .coords = device.coords};
    if (processes_) place.granule = processes_->process_of(device.id).value_or(-1);
    granules.insert(place.granule);
    if (grid_) {
      for (std::size_t d = 0; d < low.size(); ++d) place.coords[d] -= low[d];
      place.chip = grid_->chip(place.coords);
      devices_per_chip_ = std::max(devices_per_chip_, ++on_chip[{place.slice, place.chip}]);
    }
    places_.emplace(device.id, std::move(place));
  }
  granules_ = std::ssize(granules);
  if (mesh_)
    if (const Place* first = place(mesh_->device_ids()[0])) slice_ = first->slice;
}

double LinkModel::Demand::seconds() const {
  double most = loads ? loads->empty() ? 0 : *std::ranges::max_element(*loads) : 1;
  return scale * most + latency;
}

const LinkModel::Place* LinkModel::place(std::int64_t device) const {
  auto found = places_.find(device);
  return found == places_.end() ? nullptr : &found->second;
}

// Bytes per second on one link between two chips. The figures are those of one device's share.
double LinkModel::link_rate() const {
  return figures_.link_bandwidth * devices_per_chip_ / std::max(figures_.links, 1);
}

LinkModel::Span LinkModel::measured(const AxisList& axes) const {
  DeviceGroups groups = mesh_->groups(axes);
  Span worst{.devices = static_cast<double>(groups.group_size()),
             .per_granule = static_cast<double>(groups.group_size()),
             .directions = 0};
  for (std::int64_t g = 0; g < std::min(groups.count(), kMostGroups); ++g) {
    DeviceGroup group = groups[g];
    std::map<std::int64_t, double> members;
    std::vector<std::set<std::int64_t>> seen(num_directions_);
    std::int64_t looked_at = std::min(group.size(), kMostMembers);
    for (std::int64_t k = 0; k < looked_at; ++k) {
      const Place* at = place(group[k]);
      if (at == nullptr) continue;
      ++members[at->granule];
      for (std::size_t d = 0; d < seen.size(); ++d) seen[d].insert(at->coords[d]);
    }
    auto directions =
        std::ranges::count_if(seen, [](const auto& values) { return values.size() > 1; });
    worst.directions = std::max(worst.directions, static_cast<int>(directions));
    if (members.size() > 1)
      worst.per_granule =
          std::min(worst.per_granule, worst.devices / static_cast<double>(members.size()));
  }
  return worst;
}

LinkModel::Span LinkModel::span(const Collective& one) const {
  if (!one.axes || !mesh_) {
    double n = static_cast<double>(std::max<std::int64_t>(one.group_size, 1));
    double slice =
        places_.empty() ? n : static_cast<double>(places_.size()) / static_cast<double>(granules_);
    return {.devices = n,
            .per_granule = std::min(n, slice),
            .directions = static_cast<int>(num_directions_)};
  }
  auto [found, is_new] = spans_.try_emplace(join(*one.axes, ","));
  if (is_new) found->second = measured(*one.axes);
  return found->second;
}

const std::vector<double>* LinkModel::loads(const Collective& one) const {
  if (!grid_ || !mesh_ || !one.axes) return nullptr;
  auto [found, is_new] = loads_.try_emplace(cat(to_string(one.kind), " ", join(*one.axes, ",")));
  if (!is_new) return &found->second;
  ChipGroups members;
  DeviceGroups groups = mesh_->groups(*one.axes);
  for (std::int64_t g = 0; g < groups.count(); ++g) {
    DeviceGroup group = groups[g];
    std::map<std::int64_t, std::vector<std::int64_t>> parts;  // by granule
    for (std::int64_t k = 0; k < group.size(); ++k)
      if (const Place* at = place(group[k]); at != nullptr && at->slice == slice_)
        parts[at->granule].push_back(at->chip);
    for (auto& part : parts) members.push_back(std::move(part.second));
  }
  found->second = grid_->loads(one.kind, members);
  return &found->second;
}

const std::vector<double>* LinkModel::permutation_loads(const Collective& one) const {
  if (!grid_ || !mesh_ || one.shifts.size() != 1) return nullptr;
  const AxisShift& shift = one.shifts[0];
  auto [found, is_new] = loads_.try_emplace(shift.to_string());
  if (!is_new) return &found->second;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for_each_pair(*mesh_, shift, [&](std::int64_t sender, std::int64_t receiver) {
    const Place *from = place(sender), *to = place(receiver);
    if (from && to && from->granule == to->granule && from->slice == slice_)
      pairs.emplace_back(from->chip, to->chip);
  });
  found->second = grid_->permutation_loads(pairs);
  return &found->second;
}

bool LinkModel::leaves_granule(const Collective& one) const {
  if (processes_) return processes_->crosses(mesh_, one);
  if (!mesh_ || !one.axes || places_.empty()) return false;
  if (one.shifts.size() != 1) {
    Span span_of_one = span(one);
    return span_of_one.per_granule < span_of_one.devices;
  }
  bool leaves = false;
  const auto compare = [&](std::int64_t sender, std::int64_t receiver) {
    const Place *from = place(sender), *to = place(receiver);
    leaves = leaves || (from && to && from->granule != to->granule);
  };
  for_each_pair(*mesh_, one.shifts[0], compare, kMostGroups, kMostMembers);
  return leaves;
}

double LinkModel::senders(const Collective& one) const {
  if (!processes_) return 1;
  if (!mesh_ || one.shifts.size() != 1) return sharing_;
  return static_cast<double>(
      std::max<std::int64_t>(1, processes_->most_senders(*mesh_, one.shifts[0])));
}

LinkModel::Demand LinkModel::within(double bytes, double share, double steps) const {
  double rate = figures_.link_bandwidth * share;
  return {.link = &figures_.link_name,
          .bytes = bytes,
          .scale = rate > 0 ? bytes / rate : 0,
          .latency = rate > 0 ? steps * device_latency_ : 0};
}

LinkModel::Demand LinkModel::network(double bytes, double sharing, double steps) const {
  double rate = figures_.network_bandwidth / sharing;
  return {.link = &figures_.network_name,
          .bytes = bytes,
          .scale = rate > 0 ? bytes / rate : 0,
          .latency = rate > 0 ? steps * network_latency_ : 0};
}

LinkModel::Demand LinkModel::permuted(const Collective& one) const {
  auto bytes = static_cast<double>(one.bytes());
  double links = std::max(figures_.links, 1);
  if (const std::vector<double>* loads = permutation_loads(one)) {
    Demand made = within(bytes, 1, 1);
    made.loads = loads;
    made.scale = link_rate() > 0 ? bytes / link_rate() : 0;
    return made;
  }
  // A message may start over two links for each direction in which it has to go.
  double share = grid_ ? std::min(1.0, 2.0 * std::max(span(one).directions, 1) / links)
                       : (figures_.direct_links ? 1 / links : 1);
  return within(bytes, share, 1);
}

std::vector<LinkModel::Demand> LinkModel::demands(const Collective& one) const {
  auto bytes = static_cast<double>(one.bytes());
  if (bytes <= 0) return {};
  if (is_permutation(one.kind)) {
    if (one.kind == CollectiveKind::kReceive) return {};  // counted at the send
    if (one.axes && one.axes->empty()) return {};
    if (one.form == CollectiveForm::kAcrossSlices || leaves_granule(one))
      return {network(bytes, senders(one), 1)};
    return {permuted(one)};
  }
  Span span_of_one = span(one);
  if (span_of_one.devices <= 1) return {};
  double m = std::max(span_of_one.per_granule, 1.0), g = span_of_one.devices / m;
  std::vector<Demand> made;
  if (m > 1) {
    double part = is_exchange(one.kind) ? bytes / g : bytes;
    bool adds = one.kind == CollectiveKind::kAllReduce && figures_.switch_adds && !grid_;
    double share = figures_.direct_links ? std::min(1.0, (m - 1) / std::max(figures_.links, 1)) : 1;
    made.push_back(
        within(part * (adds ? 1 : ring_factor(one.kind, m)), share, ring_steps(one.kind, m)));
    if (const std::vector<double>* at = loads(one)) {
      made.back().loads = at;
      made.back().scale = link_rate() > 0 ? part / link_rate() : 0;
    }
  }
  if (g > 1)
    made.push_back(network(is_exchange(one.kind)
                               ? bytes * (span_of_one.devices - m) / span_of_one.devices
                               : bytes / m * ring_factor(one.kind, g),
                           sharing_, ring_steps(one.kind, g)));
  return made;
}

std::vector<LinkUse> LinkModel::uses(const Collective& one) const {
  std::vector<LinkUse> used;
  for (const Demand& each : demands(one)) used.push_back({*each.link, each.bytes, each.seconds()});
  return used;
}

double LinkModel::seconds(const Collective& one) const {
  double sum = 0;
  for (const Demand& each : demands(one)) sum += each.seconds();
  return sum;
}

std::vector<LinkUse> LinkModel::together(std::span<const Collective* const> collectives) const {
  struct Sum {
    double bytes = 0, seconds = 0;
    std::vector<double> loads;
  };
  std::map<std::string, Sum> sums;
  for (const Collective* one : collectives) {
    auto times = static_cast<double>(one->executions);
    for (const Demand& each : demands(*one)) {
      Sum& sum = sums[*each.link];
      sum.bytes += times * each.bytes;
      if (!each.loads) {
        sum.seconds += times * each.seconds();
        continue;
      }
      sum.seconds += times * each.latency;
      if (sum.loads.size() < each.loads->size()) sum.loads.resize(each.loads->size(), 0);
      for (std::size_t i = 0; i < each.loads->size(); ++i)
        sum.loads[i] += times * each.scale * (*each.loads)[i];
    }
  }
  std::vector<LinkUse> used;
  for (const auto& [link, sum] : sums) {
    double busiest = sum.loads.empty() ? 0 : *std::ranges::max_element(sum.loads);
    used.push_back({link, sum.bytes, sum.seconds + busiest});
  }
  return used;
}

}  // namespace meshard
