// A diff as text, and as a page for a pull request.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "meshard/report/diff.h"

namespace meshard {

/// Formats seconds with three digits: `1.5 ms`, `12 us`, `2 s`.
std::string seconds_text(double seconds);

/// A number of bytes, or of seconds.
std::string amount_text(double amount, bool bytes);

/// `5 KiB → 7 KiB (+2 KiB)`; `5 KiB` if unchanged.
std::string bytes_change_text(double before, double after);

/// `5 KiB → 7 KiB (+2 KiB, +40%)`; without the percentage if relative_growth_text() is empty.
std::string bytes_growth_text(double before, double after);

/// `+40%`, `-12.5%`; empty if there was none before, or the change rounds to 0%.
std::string relative_growth_text(double before, double after);

/// Formats a fraction as a percentage with at most one decimal: `12.5%`.
std::string growth_percent(double fraction);

/// `1.2 ms → 900 us (-25%)`; `1.2 ms` if unchanged.
std::string seconds_change_text(double before, double after);

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
