#include "meshard/explain/collectives/layer_traffic.h"

#include <algorithm>

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
  for (const LogicalCollective& each : collectives) {
    const CollectivePurpose& purpose = each.whole.purpose;
    auto found = std::find_if(rows.begin(), rows.end(), [&](const LayerTraffic& row) {
      return row.layer == purpose.layer && row.phase == purpose.phase &&
             row.purpose == purpose.kind;
    });
    if (found == rows.end()) {
      rows.push_back({.layer = purpose.layer, .phase = purpose.phase, .purpose = purpose.kind});
      found = rows.end() - 1;
    }
    ++found->count;
    found->executions = saturating_add(found->executions, each.whole.executions);
    found->total_bytes = saturating_add(found->total_bytes, each.whole.total_bytes());
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
