// Compares two programs, for example before and after a change; limits on what a change may add.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/explain/report.h"

namespace meshard {

/// Value type: collectives of one kind, axes and place, before and after.
struct CollectiveChange {
  /// The number of logical collectives, and the totals of their executions. Bytes are the sum over
  /// all executions on one device.
  struct Side {
    std::int64_t count = 0;
    std::int64_t executions = 0;
    std::int64_t bytes = 0;
    MESHARD_FIELDS(count, executions, bytes)
    friend bool operator==(const Side&, const Side&) = default;
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// `"data", "model"`; `no mesh axes` if the groups match no axes.
  std::string axes;
  /// The source lines; empty if unknown.
  std::string place;
  Side before, after;

  MESHARD_FIELDS(kind, axes, place, before, after)
  bool changed() const { return before != after; }
  /// `+ 2 all-gathers on "data", 28 KiB, from demo.cc:42`; `-` for removed, `~` for changed ones.
  std::string to_string() const;
};

/// Value type: a number that may have changed, in bytes or seconds.
struct AmountChange {
  /// `arguments`, `peak`; `compute`, `data on ICI`
  std::string part;
  double before = 0, after = 0;
  MESHARD_FIELDS(part, before, after)
  bool changed() const { return before != after; }
};

/// Value type: an argument or result whose sharding changed, or that exists on one side only.
struct PlacementChange {
  /// `argument 0 w1`, `result 2`
  std::string value;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`; empty if it does not exist on that side.
  std::string before, after;
  MESHARD_FIELDS(value, before, after)
  std::string to_string() const;
};

/// Value type: a line of text about reshards or buffers, with its counts.
struct TextChange {
  std::string text;
  std::int64_t before = 0, after = 0;
  MESHARD_FIELDS(text, before, after)
  bool changed() const { return before != after; }
};

/// Value type: the differences between two programs.
struct ReportDiff {
  struct Heading {
    /// `step on mesh<data=2, model=4> for v5e:2x4`
    std::string program;
    std::string bound_by;  ///< by the roofline; empty without a roofline
    std::int64_t collectives = 0;
    std::int64_t collective_bytes = 0;
    double seconds = 0;  ///< lower bound from the roofline; 0 without a roofline
    MESHARD_FIELDS(program, bound_by, collectives, collective_bytes, seconds)
    friend bool operator==(const Heading&, const Heading&) = default;
  };
  Heading before, after;
  /// Changed and unchanged ones, in the order of the first program, then the second.
  std::vector<CollectiveChange> collectives;
  /// Bytes on one device; 0 for parts that a compiler does not report.
  std::vector<AmountChange> memory;
  /// Seconds by the schedule: `estimated`, `compute and memory`, `exposed communication`, `hidden
  /// communication`, which is not part of the estimate. Empty unless both sides have a schedule.
  std::vector<AmountChange> estimates;
  /// Seconds by the roofline; empty if neither side has hardware figures.
  std::vector<AmountChange> times;
  /// Changed ones only.
  std::vector<PlacementChange> placements;
  /// Changed ones only.
  std::vector<TextChange> reshards;
  /// The largest buffers of both programs; they do not count as differences.
  std::vector<TextChange> buffers;

  MESHARD_FIELDS(before, after, collectives, memory, estimates, times, placements, reshards,
                 buffers)
  /// True if all that a device computes and stores is equal: collectives, memory, times,
  /// placements, reshards. Names and sizes of single buffers and program names are ignored.
  bool same() const;
  /// The diff on one screen, with at most `most_lines` lines of each list; 0: no limit.
  std::string to_string(std::size_t most_lines = 12) const;
};

/// Compares two reports. Arguments and results are paired by name if all names are unique, else by
/// position. Times and bytes are the reported values, so that two targets can be compared.
ReportDiff diff(const ProgramReport& before, const ProgramReport& after);

/// The diff as JSON: an object with `schema` "meshard.diff", `version` 1 and the fields above.
std::string to_json(const ReportDiff& diff);

/// The diff as a self-contained HTML page, side by side, without scripts or network requests.
std::string to_html(const ReportDiff& diff);

/// The quantity that a limit bounds.
enum class DiffLimitPart {
  kCollectives,  ///< bytes of each kind of collective over each combination of axes
  kBytes,        ///< bytes of all collectives together
  kMemory,       ///< MemoryUse::total()
  kTime,  ///< the estimate by the schedule; the bound of the roofline if a side has no schedule
  kShardings,  ///< shardings of arguments and results
};

template <>
struct EnumNames<DiffLimitPart> {
  using enum DiffLimitPart;
  static constexpr EnumName<DiffLimitPart> kNames[] = {{kCollectives, "collectives"},
                                                       {kBytes, "bytes"},
                                                       {kMemory, "memory"},
                                                       {kTime, "time"},
                                                       {kShardings, "shardings"}};
};

/// Value type: a limit on one number.
struct DiffLimit {
  DiffLimitPart part = DiffLimitPart::kCollectives;
  /// The fraction by which the number may grow: 0.05 for 5%. Default: 0. Always 0 for shardings.
  double fraction = 0;

  /// `bytes 5%`, `collectives`
  std::string to_string() const;
  friend bool operator==(const DiffLimit&, const DiffLimit&) = default;
};

/// Parses limits separated by `;`: `collectives; bytes 5%; memory 5%; time 2.5%; shardings`.
/// @error invalid argument: another name, or not a percentage
Result<std::vector<DiffLimit>> parse_diff_limits(std::string_view text);

/// What is over the limits, a line for each: `bytes: 2 KiB → 3 KiB (+50%), at most 5% more`.
///
/// Counts of instructions are not compared, because compilers combine and split collectives: if two
/// all-reduces become one, their bytes stay the same. A kind of collective over axes that had none
/// before is over the limit for collectives. If the memory or the time of a side is not known,
/// that is a line too.
std::vector<std::string> over_limits(const ReportDiff& diff, const std::vector<DiffLimit>& limits);

}  // namespace meshard
