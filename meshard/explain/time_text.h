// Human-readable times.
#pragma once
#include <string>

namespace meshard {

/// Formats seconds as `12.3 ms`, `4 us`, `1.5 s`: three significant digits; `unlimited` for
/// infinity.
std::string time_text(double seconds);

}  // namespace meshard
