// Limits on what a change may add to a program, for a test that fails when it adds more.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/result.h"
#include "meshard/report/diff.h"

namespace meshard {

/// What a limit is about.
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

/// `collectives`, `bytes`, `memory`, `time`, `shardings`
inline std::string_view to_string(DiffLimitPart part) { return enum_name(part); }

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
