// A diff as a page for a pull request.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "meshard/report/diff.h"

namespace meshard {

/// Options of to_markdown().
struct DiffMarkdownOptions {
  /// What is over the limits, as over_limits() returns it; listed below the verdict.
  std::vector<std::string> over_limits = {};
  /// Maximum number of rows of each table; the rest is counted. Default: 20.
  std::size_t most_rows = 20;
  /// Tables that would make the page longer are left out, and the page says so. Default: 60,000;
  /// a comment on GitHub has at most 65,536 characters.
  std::size_t most_characters = 60000;
};

/// The diff as Markdown for GitHub (GFM): a verdict, a table of totals, and folded tables of the
/// collectives, memory, times, shardings and reshards that changed. Names and places from a module
/// are escaped: they cannot add columns, markup, links, images or mentions.
std::string to_markdown(const ReportDiff& diff, const DiffMarkdownOptions& options = {});

}  // namespace meshard
