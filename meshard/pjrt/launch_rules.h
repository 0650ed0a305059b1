// Workarounds for plugin bugs, by platform and API version. A plugin without a row is launched
// without a lock and without a limit.
#pragma once
#include <span>
#include <string_view>

namespace meshard::pjrt {

/// A value: how programs are launched on one kind of plugin. The defaults suit a plugin without
/// bugs.
///
/// The checks that protect the user of any plugin (number, type, device and liveness of the
/// arguments) are not in the table: they always run and cost a few nanoseconds per argument.
struct LaunchRules {
  /// Maximum number of launches in flight on one client; a further launch first waits for the
  /// oldest. 0: no limit.
  int max_in_flight = 0;
  /// After a launch on several devices fails, later ones never complete; refuse them.
  bool error_wedges_client = false;
  /// execute_device may run a cheap program in the calling thread. One with collectives would wait
  /// forever for the other devices; refuse it.
  bool device_launch_may_run_inline = false;
  /// The devices of a program start only after all of them were launched, even without collectives.
  /// If one device refuses a launch, the other devices never start it or any later one. Programs
  /// are therefore launched on all devices at once.
  bool parts_start_together = false;
  /// A small program for one device runs in the calling thread, also if it was compiled as a part
  /// of a program for several devices and is loaded once more for each (Client::load_for_each).
  bool loaded_parts_run_inline = false;
  /// A vector allow_propagation_to_parameters of the wrong length aborts the process. Its length
  /// must be known to be correct.
  bool checks_propagation_flags_fatally = false;
  /// The host can read the addresses of its buffers.
  bool host_memory = false;

  friend bool operator==(const LaunchRules&, const LaunchRules&) = default;
};

/// One row of the table: applies to API versions 0.first_minor to 0.last_minor of `platform`.
struct LaunchRuleRow {
  std::string_view platform;
  int first_minor;
  int last_minor;
  LaunchRules rules;
  std::string_view why;
};

/// All rows; the first match applies.
std::span<const LaunchRuleRow> launch_rule_table();

/// The rules of `platform` at API version 0.`minor`. The name is in lower case, as a client reports
/// it.
LaunchRules launch_rules(std::string_view platform, int minor);

/// A new launch id, from 1 to 2^31 - 1, unique in this process. The CPU plugin uses it as the key
/// by which the partitions of a program meet, for all clients of the process, and does not treat 0
/// specially.
int next_launch_id();

}  // namespace meshard::pjrt
