// Human-readable sizes.
#pragma once
#include <cstdint>
#include <string>

namespace meshard {

/// Formats bytes as `96 B`, `64 KiB`, `1.5 MiB`: powers of 1024, one decimal unless it is 0.
std::string byte_text(std::int64_t bytes);

/// Formats seconds as `12.3 ms`, `4 us`, `1.5 s`: three significant digits; `unlimited` for
/// infinity.
std::string time_text(double seconds);

}  // namespace meshard
