// Reads a report's JSON back.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/explain/report.h"

namespace meshard::tool {

/// The report that to_json() wrote. Members that follow from others (a shard's type, a total) are
/// not read; members that are not known are passed over. What the text cannot hold comes back as
/// near as can be: null is infinity, and U+FFFD stands for each byte that was no UTF-8.
/// @error data loss: no JSON, no report, or another version; the message names the member, as in
/// `collectives[3].axes[0]`.
Result<ProgramReport> read_report(std::string_view json);

/// The same from a file. @error also what reading the file meets, with its name.
Result<ProgramReport> read_report_file(const std::string& path);

}  // namespace meshard::tool
