// A report as one HTML page.
#pragma once
#include <string>

#include "meshard/explain/report.h"

namespace meshard {

/// A page that needs nothing but a browser: style, script and the report itself (as to_json gives
/// it) stand in it, and its policy refuses every request and every other script or style, so that
/// names from a module of any origin stay text. It shows whether the program fits, the bounds of
/// its time, the devices where they sit, each sharding as a picture, the collectives, reshards and
/// the module in program order. Without JavaScript it shows the report as text.
std::string to_html(const ProgramReport& report);

}  // namespace meshard
