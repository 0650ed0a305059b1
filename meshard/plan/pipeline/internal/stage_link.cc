#include "meshard/plan/pipeline/internal/stage_link.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "meshard/explain/program_facts.h"
#include "meshard/target/hardware.h"

namespace meshard::internal {
namespace {

// `count` of them, at equal distances.
std::vector<std::int64_t> chosen(const Mesh& mesh, std::int64_t count) {
  DeviceIds ids = mesh.device_ids();
  std::vector<std::int64_t> all(ids.begin(), ids.end()), some;
  auto size = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = 0; i < count; ++i)
    some.push_back(all[static_cast<std::size_t>(i * size / count)]);
  return some;
}

}  // namespace

StageLink::StageLink(const Target& target, const Mesh& from, const Mesh& to,
                     const LinkOptions& options) {
  std::int64_t count = std::min(from.size(), to.size());
  receivers_ = std::max<std::int64_t>(to.size() / from.size(), 1);
  std::optional<HardwareFigures> figures = hardware_figures(target.topology());
  if (!figures) return;
  ProgramFacts facts;  // only for the processes
  facts.target = target;
  if (Result<void> described = describe_links(options, facts); !described.ok())
    throw described.error();
  std::vector<std::int64_t> senders = chosen(from, count), receivers = chosen(to, count);
  // Devices that are in both submeshes keep their part.
  std::set<std::int64_t> sends(senders.begin(), senders.end()),
      receives(receivers.begin(), receivers.end());
  std::vector<std::int64_t> ids, ends;
  for (std::size_t i = 0; i < senders.size(); ++i)
    if (!receives.contains(senders[i]) && !sends.contains(receivers[i])) {
      ids.push_back(senders[i]);
      ends.push_back(receivers[i]);
    }
  if (ids.empty()) return;
  auto pairs = static_cast<std::int64_t>(ids.size());
  ids.insert(ids.end(), ends.begin(), ends.end());
  links_.emplace(*figures, Mesh({{"side", 2}, {"pair", pairs}}, std::move(ids)), target.topology(),
                 facts.processes, options);
}

std::int64_t StageLink::device_bytes(std::int64_t received) const { return received * receivers_; }

double StageLink::seconds(std::int64_t device_bytes) const {
  if (!links_) return 0;
  Collective send;
  send.kind = CollectiveKind::kCollectivePermute;
  send.axes = AxisList{AxisRef("side")};
  send.shifts = {{.axes = AxisList{AxisRef("side")}, .by = 1, .wraps = false}};
  send.bytes_in = send.bytes_out = device_bytes;
  return links_->seconds(send);
}

}  // namespace meshard::internal
