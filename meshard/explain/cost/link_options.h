// Options of explain(): the processes of a run, and the links between them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard {

/// Value type: bandwidth and latency of a kind of link.
struct LinkFigures {
  /// Bytes per second in one direction.
  double bandwidth = 0;
  /// Seconds for each message.
  double latency = 0;

  /// Parses `10GB/s`, `10GB/s,20us`. Units: B/s, KB/s, MB/s, GB/s, TB/s (powers of 1000), Kbit/s,
  /// Mbit/s, Gbit/s; ns, us, ms, s.
  /// @error invalid argument
  static Result<LinkFigures> parse(std::string_view text);
  /// `10 GB/s, 20 us`
  std::string to_string() const;
  friend bool operator==(const LinkFigures&, const LinkFigures&) = default;
};

/// Value type: how a program is divided into processes, and the links that its collectives use.
struct LinkOptions {
  /// Divides the target's devices, in the order of their ids, into as many processes of equal size.
  /// None: as the target's topology says, if `between_processes` is set.
  std::optional<std::int64_t> processes = std::nullopt;
  /// The link of one process to others, which its devices share. None: collectives across processes
  /// are not distinguished from others.
  std::optional<LinkFigures> between_processes = std::nullopt;
  /// The links of one device to others of its process, all together. None: the published ones.
  std::optional<LinkFigures> between_devices = std::nullopt;
  friend bool operator==(const LinkOptions&, const LinkOptions&) = default;
};

}  // namespace meshard
