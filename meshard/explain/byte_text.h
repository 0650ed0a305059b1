// Sizes for people.
#pragma once
#include <cstdint>
#include <string>

namespace meshard {

/// `96 B`, `64 KiB`, `1.5 MiB`: powers of 1024, one digit behind the point unless it is 0.
std::string byte_text(std::int64_t bytes);

}  // namespace meshard
