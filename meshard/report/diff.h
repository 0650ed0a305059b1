// What changed between two programs: before and after a new sharding, mesh, compiler or line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/report.h"

namespace meshard {

/// A value: the collectives of one kind, over the same axes, from the same place, before and after.
struct CollectiveChange {
  /// How many instructions, how often they run in all, and the bytes of all their runs on one
  /// device.
  struct Side {
    std::int64_t count = 0;
    std::int64_t executions = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const Side&, const Side&) = default;
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// `"data", "model"`; `no mesh axes` if the groups are those of none.
  std::string axes;
  /// The user's lines; empty if not known.
  std::string place;
  Side before, after;

  bool changed() const { return before != after; }
  /// `+ 2 all-gathers on "data", 28 KiB, from demo.cc:42`; `-` for those gone, `~` for a change.
  std::string to_string() const;
};

/// A value: a number that may have changed. Bytes or seconds.
struct AmountChange {
  /// `arguments`, `peak`; `compute`, `data on ICI`
  std::string part;
  double before = 0, after = 0;
  bool changed() const { return before != after; }
};

/// A value: an argument or result that lies differently; or one that is only there on one side.
struct PlacementChange {
  /// `argument 0 w1`, `result 2`
  std::string value;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`; empty if it is not there.
  std::string before, after;
  std::string to_string() const;
};

/// A value: reshards or buffers that read alike, and how many there are.
struct TextChange {
  std::string text;
  std::int64_t before = 0, after = 0;
  bool changed() const { return before != after; }
};

/// A value: two programs side by side.
struct ReportDiff {
  struct Heading {
    /// `step on mesh<data=2, model=4> for v5e:2x4`
    std::string program;
    std::string bound_by;  ///< by the roofline; empty without one
    std::int64_t collectives = 0;
    std::int64_t collective_bytes = 0;
    double seconds = 0;  ///< of the roofline; 0 without one
    friend bool operator==(const Heading&, const Heading&) = default;
  };
  Heading before, after;
  /// Those that changed and those that did not; in the order of the first program, then the second.
  std::vector<CollectiveChange> collectives;
  /// Bytes on one device; a part that a compiler does not count is 0.
  std::vector<AmountChange> memory;
  /// Seconds by the roofline; empty without figures on either side.
  std::vector<AmountChange> times;
  /// Changed ones only.
  std::vector<PlacementChange> placements;
  /// Changed ones only.
  std::vector<TextChange> reshards;
  /// The largest buffers of both; not a difference in themselves.
  std::vector<TextChange> buffers;

  /// True if nothing that a device does or keeps differs: collectives, memory, times, placements,
  /// reshards. Names and sizes of single buffers and the programs' names do not count.
  bool same() const;
  /// One screen; at most `most_lines` of each list, 0 for all.
  std::string to_string(std::size_t most_lines = 12) const;
};

/// Compares two reports. Arguments and results are paired by name where all have one of their own,
/// else by position. Times and bytes are what the reports say: those of two targets may be
/// compared.
ReportDiff diff(const ProgramReport& before, const ProgramReport& after);

/// The diff as JSON: one object with `schema` "meshard.diff", `version` 1 and the fields above.
std::string to_json(const ReportDiff& diff);

/// One page, side by side, that needs nothing else: no script, no network.
std::string to_html(const ReportDiff& diff);

}  // namespace meshard
