// Training text and held-out text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/core.h"

namespace gpt {

struct Text {
  std::string train, held_back;
  std::string about;  ///< one-line description of the source
};

/// The license texts of a Debian system. These are /usr/share/common-licenses and the packages'
/// copyright files. The GNU Free Documentation License and Mozilla Public License families are held
/// out completely: the training text has no paragraph that shares ten consecutive words with them.
/// Only prose is used, without duplicate paragraphs and without lists of files or names.
/// @error not found if there is not enough text.
meshard::Result<Text> license_text();

/// The bytes of a file; the last tenth is held out.
/// @error not found; invalid argument if the file has less than 10,000 bytes.
meshard::Result<Text> text_of_file(const std::string& path);

/// Random windows of `length` + 1 bytes each, concatenated. They depend only on the seed and the
/// step, so that a resumed run sees the same data.
std::vector<std::int32_t> windows_of_step(const std::string& text, std::int64_t count,
                                          std::int64_t length, std::uint64_t seed,
                                          std::int64_t step);

/// Consecutive windows, `length` bytes apart, starting with window number `first`. Windows beyond
/// the end of the text wrap around to its start.
std::vector<std::int32_t> windows_in_order(const std::string& text, std::int64_t count,
                                           std::int64_t length, std::int64_t first);

/// SplitMix64 (Steele, Lea and Flood, 2014): the next 64-bit random number.
std::uint64_t next_random(std::uint64_t& state);

}  // namespace gpt
