#include "meshard/explain/cost/link_use.h"

#include <algorithm>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/topology/physical_grid.h"

namespace meshard {
namespace {

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

LinkModel::LinkModel(HardwareFigures figures, std::optional<Mesh> mesh,
                     std::optional<Topology> topology, std::optional<ProcessMap> processes,
                     const LinkOptions& links)
    : figures_(std::move(figures)), mesh_(std::move(mesh)) {
  if (links.between_devices) {
    figures_.link_bandwidth = links.between_devices->bandwidth;
    figures_.switch_adds = false;
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
  double most = loads ? loads->empty() ? 0 : *std::max_element(loads->begin(), loads->end()) : 1;
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
    auto directions = std::count_if(seen.begin(), seen.end(),
                                    [](const auto& values) { return values.size() > 1; });
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
  double share = grid_ ? std::min(1.0, 2.0 * std::max(span(one).directions, 1) / links) : 1;
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
    made.push_back(
        within(part * (adds ? 1 : ring_factor(one.kind, m)), 1, ring_steps(one.kind, m)));
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
    double busiest = sum.loads.empty() ? 0 : *std::max_element(sum.loads.begin(), sum.loads.end());
    used.push_back({link, sum.bytes, sum.seconds + busiest});
  }
  return used;
}

}  // namespace meshard
