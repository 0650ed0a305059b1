// A report as JSON: for programs that read it, for the page and for comparing two compiles.
#pragma once
#include <cstddef>
#include <string>

#include "meshard/explain/report.h"

namespace meshard {

/// What the member `version` of a report's JSON says. It grows when a member changes its meaning or
/// goes away; new members alone do not change it.
inline constexpr int kReportJsonVersion = 1;

/// All of a report, as docs/report-schema.json describes it. Every part is there, also if empty;
/// integers have all their digits, and infinite or undefined numbers are null.
/// @param indent spaces for each level; 0: all in one line.
std::string to_json(const ProgramReport& report, std::size_t indent = 0);

}  // namespace meshard
