// Runs the golden files under a folder and reports on them.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// What became of a file's cases.
struct FileReport {
  std::int64_t passed = 0;  // without a rule
  std::int64_t failed = 0;
  std::int64_t by_rule = 0;
  std::int64_t unknown = 0;
  std::int64_t skipped = 0;         // carry a tag that was to be skipped, or need a plugin
  std::map<Rule, int> rule_counts;  // in how many cases each rule decided
};

/// What to run.
struct RunOptions {
  std::filesystem::path data;
  std::vector<std::string> skipped_tags;
  /// Keep the raw answers in `observed`.
  bool observe = false;
};

/// Of a whole run: the files together, and the raw answers by file name as `[{name, answer}, ...]`,
/// with `id` for `name` where the file says so.
struct RunReport {
  FileReport total;
  Json observed = Json::object();
};

/// Runs every `*.json` under `options.data`, by name of the file; a file that no suite knows counts
/// as unknown, one that cannot be read as a failure. Writes a line for each file, its failures and
/// its rules to `out`.
RunReport run_all(const RunOptions& options, std::ostream& out);

}  // namespace meshard::conformance
