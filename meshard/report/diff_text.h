// Text fragments shared by the text form and the HTML page of a diff.
#pragma once
#include <string>

#include "meshard/report/diff.h"

namespace meshard {

/// Formats seconds with three digits: `1.5 ms`, `12 us`, `2 s`.
std::string seconds_text(double seconds);

/// A number of bytes, or of seconds.
std::string amount_text(double amount, bool bytes);

/// `5 KiB → 7 KiB (+2 KiB)`; `5 KiB` if unchanged.
std::string bytes_change_text(double before, double after);

/// `5 KiB → 7 KiB (+2 KiB, +40%)`; without the percentage if relative_growth_text() has none.
std::string bytes_growth_text(double before, double after);

/// `+40%`, `-12.5%`; empty if there was none before, or the change rounds to 0%.
std::string relative_growth_text(double before, double after);

/// Formats a fraction as a percentage with at most one decimal: `12.5%`.
std::string growth_percent(double fraction);

/// `1.2 ms → 900 us (-25%)`; `1.2 ms` if unchanged.
std::string seconds_change_text(double before, double after);

}  // namespace meshard
