// How programs are launched on one kind of plugin.
#pragma once
#include <string_view>

#include "meshard/quirks/quirks.h"

namespace meshard::pjrt {

/// A value: how programs are launched. The defaults suit a plugin without quirks.
///
/// The checks that protect the user of any plugin (number, type, device and liveness of the
/// arguments) are not among the rules: they always run and cost a few nanoseconds per argument.
struct LaunchRules {
  /// Maximum number of launches in flight on one client; a further launch first waits for the
  /// oldest. 0: no limit (Quirk::kLaunchQueue).
  int max_in_flight = 0;
  /// After a launch on several devices fails, refuse later ones (Quirk::kWedgedClients).
  bool error_wedges_client = false;
  /// Refuse to launch the parts of a program with collectives one by one (Quirk::kInlineParts).
  bool device_launch_may_run_inline = false;
  /// The same for programs without collectives (Quirk::kPartsStartTogether).
  bool parts_start_together = false;
  /// A small program for one device runs in the calling thread, also if it was compiled as a part
  /// of a program for several devices and is loaded once more for each (Client::load_for_each).
  bool loaded_parts_run_inline = false;
  /// The host can read the addresses of its buffers.
  bool host_memory = false;

  friend bool operator==(const LaunchRules&, const LaunchRules&) = default;
};

/// The rules of `platform` at API version 0.`minor`. The name is in lower case, as a client reports
/// it.
LaunchRules launch_rules(std::string_view platform, int minor, QuirkSet quirks);

/// A new launch id, from 1 to 2^31 - 1, unique in this process. The CPU plugin uses it as the key
/// by which the partitions of a program meet, for all clients of the process, and does not treat 0
/// specially.
int next_launch_id();

}  // namespace meshard::pjrt
