#include "meshard/pjrt/run_rules.h"

#include <algorithm>
#include <set>

#include "meshard/base/cat.h"

namespace meshard::pjrt {
namespace {

bool is_given(std::span<const NamedValue> given, std::string_view name) {
  return std::ranges::any_of(given, [&](const NamedValue& each) { return each.name == name; });
}

// The number of `rank` among the processes of its machine.
int index_on_host(const RunMembers& run, int rank) {
  int index = 0;
  for (int other = 0; other < rank; ++other)
    index +=
        run.hosts[static_cast<std::size_t>(other)] == run.hosts[static_cast<std::size_t>(rank)];
  return index;
}

// Without this, each process on a machine would take all its GPUs.
std::vector<std::int64_t> own_devices(const RunMembers& run) {
  auto own = static_cast<std::size_t>(run.rank);
  std::int64_t first = 0;
  for (std::size_t other = 0; other < own; ++other)
    if (run.hosts[other] == run.hosts[own]) first += run.local_devices[other];
  std::vector<std::int64_t> devices;
  for (int i = 0; i < run.local_devices[own]; ++i) devices.push_back(first + i);
  return devices;
}

// libtpu's default port.
constexpr int kTpuPort = 8476;

// How the chips of one machine are divided among processes of one chip each.
std::string_view tpu_process_bounds(int processes) {
  switch (processes) {
    case 2: return "1,2,1";
    case 4: return "2,2,1";
    case 8: return "2,4,1";
    default: return "";
  }
}

std::vector<std::pair<std::string, std::string>> tpu_variables(const RunMembers& run) {
  std::set<std::string> machines(run.hosts.begin(), run.hosts.end());
  auto processes = static_cast<std::size_t>(run.size());
  if (machines.size() == processes)  // each process has all chips of its machine
    return {{"TPU_WORKER_ID", cat(run.rank)}, {"TPU_WORKER_HOSTNAMES", join(run.hosts, ",")}};
  int index = index_on_host(run, run.rank);
  std::string addresses;
  for (int rank = 0; rank < run.size(); ++rank)
    append(
        addresses, rank == 0 ? "" : ",",
        machines.size() == 1 ? std::string("localhost") : run.hosts[static_cast<std::size_t>(rank)],
        ":", kTpuPort + index_on_host(run, rank));
  std::vector<std::pair<std::string, std::string>> variables = {
      {"CLOUD_TPU_TASK_ID", cat(run.rank)},
      {"TPU_PROCESS_ADDRESSES", addresses},
      {"TPU_PROCESS_PORT", cat(kTpuPort + index)},
      // Several processes of one machine load libtpu, each for its own chips.
      {"ALLOW_MULTIPLE_LIBTPU_LOAD", "1"}};
  bool one_each = std::ranges::all_of(run.local_devices, [](int count) { return count == 1; });
  std::string_view bounds = tpu_process_bounds(run.size());
  if (machines.size() == 1 && one_each && !bounds.empty()) {
    variables.emplace_back("TPU_VISIBLE_CHIPS", cat(index));
    variables.emplace_back("TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1");
    variables.emplace_back("TPU_PROCESS_BOUNDS", bounds);
  }
  return variables;
}

}  // namespace

int RunMembers::on_this_host() const {
  return static_cast<int>(std::ranges::count(hosts, hosts[static_cast<std::size_t>(rank)]));
}

std::vector<NamedValue> options_for_run(std::string_view platform, const RunMembers& run,
                                        std::span<const NamedValue> given, bool sees_own_devices) {
  if (platform != "cuda" || run.size() < 2) return {};
  if (is_given(given, "node_id") || is_given(given, "num_nodes")) return {};
  std::vector<NamedValue> options = {{"node_id", std::int64_t{run.rank}},
                                     {"num_nodes", std::int64_t{run.size()}}};
  if (run.on_this_host() > 1 && !sees_own_devices && !is_given(given, "visible_devices"))
    options.push_back({"visible_devices", own_devices(run)});
  return options;
}

std::vector<std::pair<std::string, std::string>> variables_for_run(std::string_view platform,
                                                                   const RunMembers& run) {
  if (platform != "tpu" || run.size() < 2) return {};
  return tpu_variables(run);
}

}  // namespace meshard::pjrt
