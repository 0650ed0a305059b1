#include "meshard/explain/cost/link_use.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "meshard/base/cat.h"
#include "meshard/mesh/device_groups.h"

namespace meshard {
namespace {

// Limits of groups and members that are examined; meshes are regular, so a few are representative.
constexpr std::int64_t kMostGroups = 16;
constexpr std::int64_t kMostMembers = 4096;

bool is_one_to_one(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectivePermute || kind == CollectiveKind::kSend ||
         kind == CollectiveKind::kReceive;
}

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
  bool by_process = !topology->has_coords();
  for (const DeviceAttributes& device : topology->devices()) {
    Place place{device.slice_index.value_or(by_process ? device.process_index : 0), device.coords};
    if (processes_) place.granule = processes_->process_of(device.id).value_or(-1);
    granules.insert(place.granule);
    places_.emplace(device.id, std::move(place));
  }
  granules_ = std::ssize(granules);
  if (!by_process) {
    extent_ = topology->extent();
    wrap_ = topology->wrap().value_or(Topology::Wrap());
  }
}

const LinkModel::Place* LinkModel::place(std::int64_t device) const {
  auto found = places_.find(device);
  return found == places_.end() ? nullptr : &found->second;
}

LinkModel::Span LinkModel::measured(const AxisList& axes) const {
  DeviceGroups groups = mesh_->groups(axes);
  Span worst{.devices = static_cast<double>(groups.group_size()),
             .per_granule = static_cast<double>(groups.group_size()),
             .directions = 0};
  for (std::int64_t g = 0; g < std::min(groups.count(), kMostGroups); ++g) {
    DeviceGroup group = groups[g];
    std::map<std::int64_t, double> members;
    std::vector<std::set<std::int64_t>> seen(extent_.size());
    std::int64_t looked_at = std::min(group.size(), kMostMembers);
    for (std::int64_t k = 0; k < looked_at; ++k) {
      const Place* at = place(group[k]);
      if (at == nullptr) continue;
      ++members[at->granule];
      for (std::size_t d = 0; d < seen.size(); ++d) seen[d].insert(at->coords[d]);
    }
    auto directions = std::count_if(seen.begin(), seen.end(),
                                    [](const auto& values) { return values.size() > 1; });
    worst.directions = g == 0 ? static_cast<int>(directions)
                              : std::min(worst.directions, static_cast<int>(directions));
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
            .directions = static_cast<int>(extent_.empty() ? 0 : 1)};
  }
  auto [found, is_new] = spans_.try_emplace(join(*one.axes, ","));
  if (is_new) found->second = measured(*one.axes);
  return found->second;
}

double LinkModel::hops(const Place& a, const Place& b) const {
  double sum = 0;
  for (std::size_t d = 0; d < extent_.size(); ++d) {
    std::int64_t apart = std::abs(a.coords[d] - b.coords[d]);
    bool wraps = d < wrap_.size() && wrap_[d];
    if (wraps) apart = std::min(apart, extent_[d] - apart);
    sum += static_cast<double>(apart);
  }
  return sum;
}

LinkModel::Way LinkModel::way(const Collective& one) const {
  Way longest{.hops = 1, .leaves_granule = false};
  if (!mesh_ || !one.axes || places_.empty()) return longest;
  if (one.shifts.size() != 1) {
    Span span_of_one = span(one);
    longest.leaves_granule = span_of_one.per_granule < span_of_one.devices;
    return longest;
  }
  DeviceGroups groups = mesh_->groups(one.shifts[0].axes);
  for (std::int64_t g = 0; g < std::min(groups.count(), kMostGroups); ++g) {
    DeviceGroup group = groups[g];
    std::int64_t n = group.size();
    for (std::int64_t k = 0; k < std::min(n, kMostMembers); ++k) {
      std::int64_t to = k + one.shifts[0].by;
      if (!one.shifts[0].wraps && (to < 0 || to >= n)) continue;
      const Place* from = place(group[k]);
      const Place* next = place(group[((to % n) + n) % n]);
      if (from == nullptr || next == nullptr) continue;
      if (from->granule != next->granule)
        longest.leaves_granule = true;
      else
        longest.hops = std::max(longest.hops, hops(*from, *next));
    }
  }
  return longest;
}

double LinkModel::senders(const Collective& one) const {
  if (!processes_) return 1;
  if (!mesh_ || one.shifts.size() != 1) return sharing_;
  return static_cast<double>(
      std::max<std::int64_t>(1, processes_->most_senders(*mesh_, one.shifts[0])));
}

LinkUse LinkModel::within(double bytes, double share, double steps) const {
  double rate = figures_.link_bandwidth * share;
  return {.link = figures_.link_name,
          .bytes = bytes,
          .seconds = rate > 0 ? bytes / rate + steps * device_latency_ : 0};
}

LinkUse LinkModel::network(double bytes, double sharing, double steps) const {
  double rate = figures_.network_bandwidth / sharing;
  return {.link = figures_.network_name,
          .bytes = bytes,
          .seconds = rate > 0 ? bytes / rate + steps * network_latency_ : 0};
}

std::vector<LinkUse> LinkModel::uses(const Collective& one) const {
  auto bytes = static_cast<double>(one.bytes());
  if (bytes <= 0) return {};
  double links = std::max(figures_.links, 1);
  if (is_one_to_one(one.kind)) {
    if (one.kind == CollectiveKind::kReceive) return {};  // counted at the send
    if (one.axes && one.axes->empty()) return {};
    Way goes = way(one);
    if (processes_) goes.leaves_granule = processes_->crosses(mesh_, one);
    if (goes.leaves_granule || one.form == CollectiveForm::kAcrossSlices)
      return {network(bytes, senders(one), 1)};
    LinkUse use = within(bytes * goes.hops, extent_.empty() ? 1 : 1 / links, 1);
    use.bytes = bytes;
    if (one.shifts.size() == 1) use.way = one.shifts[0].by > 0 ? 1 : -1;
    return {use};
  }
  Span span_of_one = span(one);
  if (span_of_one.devices <= 1) return {};
  double m = std::max(span_of_one.per_granule, 1.0), g = span_of_one.devices / m;
  std::vector<LinkUse> used;
  bool exchange =
      one.kind == CollectiveKind::kAllToAll || one.kind == CollectiveKind::kRaggedAllToAll;
  if (m > 1) {
    bool torus = span_of_one.directions > 0;
    double share = torus ? std::min(1.0, 2.0 * span_of_one.directions / links) : 1;
    double factor = ring_factor(one.kind, m);
    if (exchange && torus) factor = std::max(factor, m / 4 / span_of_one.directions);
    used.push_back(within(bytes * factor, share, ring_steps(one.kind, m)));
  }
  if (g > 1)
    used.push_back(network(exchange ? bytes * (span_of_one.devices - m) / span_of_one.devices
                                    : bytes / m * ring_factor(one.kind, g),
                           sharing_, ring_steps(one.kind, g)));
  return used;
}

double LinkModel::seconds(const Collective& one) const {
  double sum = 0;
  for (const LinkUse& use : uses(one)) sum += use.seconds;
  return sum;
}

}  // namespace meshard
