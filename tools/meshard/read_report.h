// Reads a report from its JSON.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/explain/report.h"

namespace meshard::tool {

/// Reads a report that to_json() wrote. Derived members (a shard's type, a total) are not read;
/// unknown members are ignored. What JSON cannot represent is approximated: null is read as
/// infinity, and U+FFFD replaces each byte that was not valid UTF-8.
/// @error data loss: not JSON, not a report, or another version; the message names the member, as
/// in `collectives[3].axes[0]`.
Result<ProgramReport> read_report(std::string_view json);

/// The same from a file. @error also errors of reading the file, with its name
Result<ProgramReport> read_report_file(const std::string& path);

}  // namespace meshard::tool
