// What a plugin must be spared, as a table by platform and API version. A plugin without a row is
// launched with no lock held and no bound.
#pragma once
#include <span>
#include <string_view>

namespace meshard::pjrt {

/// A value: how programs are launched on one kind of plugin. The defaults are a plugin without
/// faults.
///
/// Checks that protect any plugin's user (number, type, device and liveness of the arguments) are
/// not in the table: they cost a few nanoseconds an argument and always hold.
struct LaunchRules {
  /// Most launches that may be under way on one client; the oldest is awaited before the next. 0:
  /// no bound.
  int max_in_flight = 0;
  /// After an error from a launch on several devices, later ones never complete: refuse them.
  bool error_wedges_client = false;
  /// execute_device runs a cheap program in the calling thread, so one with collectives would never
  /// meet its partners: refuse it.
  bool device_launch_may_run_inline = false;
  /// The parts of a program on several devices start only once all of them were launched, without
  /// collectives too: after a launch that one device refused, the others' parts and all that comes
  /// after them never start. Programs are launched on all devices at once.
  bool parts_start_together = false;
  /// A vector allow_propagation_to_parameters of the wrong length ends the process: its length must
  /// be known to be right.
  bool checks_propagation_flags_fatally = false;
  /// Addresses of its buffers can be read by the host.
  bool host_memory = false;

  friend bool operator==(const LaunchRules&, const LaunchRules&) = default;
};

/// One row: applies to API versions 0.first_minor to 0.last_minor of `platform`.
struct LaunchRuleRow {
  std::string_view platform;
  int first_minor;
  int last_minor;
  LaunchRules rules;
  std::string_view why;
};

/// All rows; the first that matches counts.
std::span<const LaunchRuleRow> launch_rule_table();

/// The rules of `platform` (in lower case, as a client reports it) at API version 0.`minor`.
LaunchRules launch_rules(std::string_view platform, int minor);

/// A number from 1 to 2^31 - 1 that no launch of this process had. The CPU plugin keys the meeting
/// of partitions by it, for all clients of the process, and takes 0 for a number like any other.
int next_launch_id();

}  // namespace meshard::pjrt
