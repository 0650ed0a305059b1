// A report as an HTML page.
#pragma once
#include <string>

#include "meshard/explain/report.h"

namespace meshard {

/// A self-contained HTML page of a report. It embeds the style, the script and the report (the JSON
/// of to_json()). Its content security policy blocks all requests and all other scripts and styles,
/// so that names from an untrusted module stay text. It shows whether the program fits, its time
/// bounds, the devices at their coordinates, pictures of the shardings, collectives, reshards, and
/// the module in program order. Without JavaScript it shows the report as text.
std::string to_html(const ProgramReport& report);

}  // namespace meshard
