// Runs the golden files in a folder, and reports the results.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "tools/conformance/suite.h"

namespace meshard::conformance {

/// The results of a file's cases.
struct FileReport {
  std::int64_t passed = 0;  // without a rule
  std::int64_t failed = 0;
  std::int64_t by_rule = 0;
  std::int64_t unknown = 0;
  std::int64_t skipped = 0;         // have a tag to skip, or need a plugin or memory
  std::map<Rule, int> rule_counts;  // the number of cases that each rule decided
};

/// What to run.
struct RunOptions {
  std::filesystem::path data;
  std::vector<std::string> skipped_tags;
  /// Whether to store the raw answers in `observed`. Default: false.
  bool observe = false;
};

/// The report of a whole run: the totals of all files, and the raw answers by file name as `[{name,
/// answer}, ...]`, with `id` in place of `name` where the file has it.
struct RunReport {
  FileReport total;
  Json observed = Json::object();
};

/// Runs every `*.json` in `options.data`, selected by file name. A file without a suite counts as
/// unknown; a file that cannot be read counts as a failure. Prints a line for each file, its
/// failures and its rules to `out`.
RunReport run_all(const RunOptions& options, std::ostream& out);

}  // namespace meshard::conformance
