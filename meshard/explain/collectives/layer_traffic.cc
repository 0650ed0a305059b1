#include "meshard/explain/collectives/layer_traffic.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {

std::string LayerTraffic::to_string() const {
  std::string text = layer.empty() ? std::string("outside the layers") : layer;
  if (phase != ProgramPhase::kUnknown) append(text, cat(", ", meshard::to_string(phase)));
  append(text, cat(": ", count, count == 1 ? " collective" : " collectives"));
  if (executions != count) append(text, cat(" run ", executions, " times"));
  append(text, cat(", ", meshard::to_string(purpose), ", ", byte_text(total_bytes)));
  return text;
}

std::vector<LayerTraffic> layer_traffic(const std::vector<LogicalCollective>& collectives) {
  std::vector<LayerTraffic> rows;
  std::map<std::tuple<std::string_view, ProgramPhase, PurposeKind>, std::size_t> known;
  for (const LogicalCollective& each : collectives) {
    const CollectivePurpose& purpose = each.whole.purpose;
    auto [position, is_new] =
        known.try_emplace({purpose.layer, purpose.phase, purpose.kind}, rows.size());
    if (is_new)
      rows.push_back({.layer = purpose.layer, .phase = purpose.phase, .purpose = purpose.kind});
    LayerTraffic& row = rows[position->second];
    ++row.count;
    row.executions = saturating_add(row.executions, each.whole.executions);
    row.total_bytes = saturating_add(row.total_bytes, each.whole.total_bytes());
  }
  // One loop says nothing about layers, unless the phases are known.
  if (std::all_of(rows.begin(), rows.end(), [](const LayerTraffic& row) {
        return row.layer.empty() || (row.layer == "loop" && row.phase == ProgramPhase::kUnknown);
      }))
    return {};
  std::stable_partition(rows.begin(), rows.end(),
                        [](const LayerTraffic& row) { return !row.layer.empty(); });
  return rows;
}

}  // namespace meshard
