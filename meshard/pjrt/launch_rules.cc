#include "meshard/pjrt/launch_rules.h"

#include <atomic>
#include <climits>
#include <cstdint>

namespace meshard::pjrt {

LaunchRules launch_rules(std::string_view platform, int minor, QuirkSet quirks) {
  LaunchRules rules;
  if (quirks.has(Quirk::kLaunchQueue)) rules.max_in_flight = 31;
  rules.error_wedges_client = quirks.has(Quirk::kWedgedClients);
  rules.device_launch_may_run_inline = quirks.has(Quirk::kInlineParts);
  rules.parts_start_together = quirks.has(Quirk::kPartsStartTogether);
  // Not faults, but what plugins can do. The first was measured on API 0.106 and 0.115, and is
  // assumed for all versions after 0.81.
  rules.loaded_parts_run_inline = platform == "cpu" && minor > 81;
  rules.host_memory = platform == "cpu";
  return rules;
}

int next_launch_id() {
  static std::atomic<std::uint32_t> counter{0};
  // An id repeats after 2^31 - 1 launches; the launch that had it ended long before.
  return static_cast<int>(counter.fetch_add(1, std::memory_order_relaxed) % INT_MAX) + 1;
}

}  // namespace meshard::pjrt
