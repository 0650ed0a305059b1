#include "meshard/explain/process_map.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <span>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  double divisor;  // 20 / 1e6 is the double next to 20e-6; 20 * 1e-6 is not
};
constexpr Unit kRates[] = {{"B/s", 1, 1},      {"KB/s", 1e3, 1},  {"MB/s", 1e6, 1},
                           {"GB/s", 1e9, 1},   {"TB/s", 1e12, 1}, {"Kbit/s", 1e3, 8},
                           {"Mbit/s", 1e6, 8}, {"Gbit/s", 1e9, 8}};
constexpr Unit kTimes[] = {{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1, 1}};

// A number with a unit; none if it is not one.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : units)
    if (rest == unit.name) return number * unit.factor / unit.divisor;
  return std::nullopt;
}

}  // namespace

Result<LinkFigures> LinkFigures::parse(std::string_view text) {
  std::size_t comma = text.find(',');
  std::optional<double> bandwidth = quantity(text.substr(0, comma), kRates), latency = 0.0;
  if (comma != std::string_view::npos) latency = quantity(text.substr(comma + 1), kTimes);
  if (!bandwidth || !latency || *bandwidth == 0)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[explain] invalid link `", text,
                     "`: expected a bandwidth (B/s, KB/s, MB/s, GB/s, TB/s, Kbit/s, Mbit/s or "
                     "Gbit/s) and perhaps a latency (ns, us, ms or s), such as 10GB/s,20us"));
  return LinkFigures{*bandwidth, *latency};
}

std::string LinkFigures::to_string() const {
  double rate = bandwidth;
  std::size_t unit = 0;
  while (unit < 4 && rate >= 1000) rate /= 1000, ++unit;
  char number[40];
  std::snprintf(number, sizeof number, "%.4g ", rate);
  std::string out = cat(number, kRates[unit].name);
  return latency > 0 ? cat(out, ", ", time_text(latency)) : out;
}

std::string MeshProcesses::to_string() const {
  std::string names;
  for (std::size_t i = 0; i < axes.size(); ++i)
    append(names, i == 0 ? "" : i + 1 == axes.size() ? " and " : ", ", '"', axes[i], '"');
  std::string crossing = axes.empty()       ? "no axis crosses them"
                         : axes.size() == 1 ? cat("axis ", names, " crosses them")
                                            : cat("axes ", names, " cross them");
  return cat(count, count == 1 ? " process; " : " processes; ", crossing);
}

ProcessMap ProcessMap::of(const Topology& topology) {
  ProcessMap map;
  std::set<std::int64_t> processes;
  for (const DeviceAttributes& device : topology.devices()) {
    map.process_of_.emplace(device.id, device.process_index);
    processes.insert(device.process_index);
  }
  map.count_ = std::ssize(processes);
  return map;
}

Result<ProcessMap> ProcessMap::divided(const Topology& topology, std::int64_t count) {
  if (count < 1 || topology.size() % count != 0)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[explain] ", topology.size(), " devices cannot be divided into ", count,
                     " processes of equal size"));
  std::vector<std::int64_t> ids;
  for (const DeviceAttributes& device : topology.devices()) ids.push_back(device.id);
  std::ranges::sort(ids);
  ProcessMap map;
  map.count_ = count;
  std::int64_t each = topology.size() / count;
  for (std::int64_t k = 0; k < std::ssize(ids); ++k)
    map.process_of_.emplace(ids[static_cast<std::size_t>(k)], k / each);
  return map;
}

std::optional<std::int64_t> ProcessMap::process_of(std::int64_t device) const {
  auto found = process_of_.find(device);
  return found == process_of_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t ProcessMap::most_devices(const std::optional<Mesh>& mesh) const {
  std::map<std::int64_t, std::int64_t> devices;
  if (mesh) {
    for (std::int64_t id : mesh->device_ids())
      if (std::optional<std::int64_t> process = process_of(id)) ++devices[*process];
  } else {
    for (const auto& [device, process] : process_of_) ++devices[process];
  }
  std::int64_t most = 1;
  for (const auto& [process, number] : devices) most = std::max(most, number);
  return most;
}

bool ProcessMap::crosses(const Mesh& mesh, const AxisList& axes) const {
  if (count_ == 1) return false;
  DeviceGroups groups = mesh.groups(axes);
  for (std::int64_t g = 0; g < groups.count(); ++g) {
    DeviceGroup group = groups[g];
    std::optional<std::int64_t> first = process_of(group[0]);
    for (std::int64_t k = 1; k < group.size(); ++k)
      if (process_of(group[k]) != first) return true;
  }
  return false;
}

bool ProcessMap::crosses(const std::optional<Mesh>& mesh, const Collective& one) const {
  if (!mesh || !one.axes) return one.group_size > most_devices(mesh);
  if (one.axes->empty()) return false;
  if (is_permutation(one.kind) && one.shifts.size() == 1)
    return most_senders(*mesh, one.shifts[0]) > 0;
  return crosses(*mesh, *one.axes);
}

std::int64_t ProcessMap::most_senders(const Mesh& mesh, const AxisShift& shift) const {
  std::map<std::int64_t, std::int64_t> senders;
  for_each_pair(mesh, shift, [&](std::int64_t device, std::int64_t next) {
    std::optional<std::int64_t> from = process_of(device);
    if (from && process_of(next) != from) ++senders[*from];
  });
  std::int64_t most = 0;
  for (const auto& [process, number] : senders) most = std::max(most, number);
  return most;
}

MeshProcesses ProcessMap::of_mesh(const Mesh& mesh) const {
  std::set<std::int64_t> processes;
  for (std::int64_t id : mesh.device_ids())
    if (std::optional<std::int64_t> process = process_of(id)) processes.insert(*process);
  MeshProcesses found{.count = std::ssize(processes), .axes = {}};
  for (const MeshAxis& axis : mesh.axes())
    if (crosses(mesh, {axis.name})) found.axes.push_back(axis.name);
  return found;
}

}  // namespace meshard
