#include "meshard/pjrt/launch_rules.h"

#include <atomic>
#include <climits>
#include <cstdint>

namespace meshard::pjrt {
namespace {

// Measured on API 0.81; the source of 0.114 still has the same queues.
constexpr LaunchRules kCpuRules = {.max_in_flight = 31,
                                   .error_wedges_client = true,
                                   .device_launch_may_run_inline = true,
                                   .checks_propagation_flags_fatally = true,
                                   .host_memory = true};

// Measured on 0.106 and 0.115, and assumed for all versions after 0.81.
constexpr LaunchRules kNewerCpuRules = [] {
  LaunchRules rules = kCpuRules;
  rules.parts_start_together = true;
  rules.loaded_parts_run_inline = true;
  return rules;
}();

constexpr LaunchRuleRow kTable[] = {
    {"cpu", 0, 81, kCpuRules,
     "32 launches that are not awaited fill every device's queue and block the thread pool; an "
     "error on one device leaves the others waiting forever"},
    {"cpu", 82, INT_MAX, kNewerCpuRules,
     "as above; in addition, the parts of a program wait for each other before they start"},
};

}  // namespace

std::span<const LaunchRuleRow> launch_rule_table() { return kTable; }

LaunchRules launch_rules(std::string_view platform, int minor) {
  for (const LaunchRuleRow& row : kTable)
    if (row.platform == platform && row.first_minor <= minor && minor <= row.last_minor)
      return row.rules;
  return {};
}

int next_launch_id() {
  static std::atomic<std::uint32_t> counter{0};
  // An id repeats after 2^31 - 1 launches; the launch that had it ended long before.
  return static_cast<int>(counter.fetch_add(1, std::memory_order_relaxed) % INT_MAX) + 1;
}

}  // namespace meshard::pjrt
