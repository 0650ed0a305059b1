// A report as JSON, for other programs, for the HTML page, and for comparing two compiles.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/explain/report.h"

namespace meshard {

/// The value of `version` in a report's JSON. It increases when a member changes meaning or is
/// removed; adding members does not change it.
inline constexpr int kReportJsonVersion = 1;

/// The whole report, as specified by docs/report-schema.json. All members are present, even if
/// empty; integers have all digits, and infinite or undefined numbers are null.
/// @param indent spaces per level; 0: all on one line.
std::string to_json(const ProgramReport& report, std::size_t indent = 0);

/// Reads a report that to_json() wrote. Derived members (a shard's type, a total) are not read;
/// unknown members are ignored. What JSON cannot represent is approximated: null is read as
/// infinity, and U+FFFD replaces each byte that was not valid UTF-8.
/// @error data loss: not JSON, not a report, or another version; the message names the member, as
/// in `collectives[3].axes[0]`.
Result<ProgramReport> read_report(std::string_view json);

}  // namespace meshard
