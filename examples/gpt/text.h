// Text to learn from, and text that is held back to see whether something was learned.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace gpt {

struct Text {
  std::string train, held_back;
  std::string about;  ///< where it comes from, one line
};

/// The licence texts of a Debian system: /usr/share/common-licenses and the copyright files of the
/// packages. The families of the GNU Free Documentation License and of the Mozilla Public License
/// are held back whole: no paragraph that shares ten words in a row with them is learned from.
/// Paragraphs are kept once, and only prose: no lists of files and of names.
/// @error not found if there are none.
meshard::Result<Text> licence_text();

/// The bytes of a file; the last tenth is held back.
/// @error not found; invalid argument if it has less than 10,000 bytes.
meshard::Result<Text> text_of_file(const std::string& path);

/// Windows of `length` + 1 bytes each, drawn at random places: the same ones for one seed and step,
/// so that a run that is resumed sees what it would have seen. Row after row.
std::vector<std::int32_t> windows_of_step(const std::string& text, std::int64_t count,
                                          std::int64_t length, std::uint64_t seed,
                                          std::int64_t step);

/// Windows one after the other, `length` bytes apart, from window number `first` on; those beyond
/// the end of the text begin at its start again.
std::vector<std::int32_t> windows_in_order(const std::string& text, std::int64_t count,
                                           std::int64_t length, std::int64_t first);

/// SplitMix64 (Steele, Lea and Flood, 2014): the next of a sequence of 64-bit numbers.
std::uint64_t next_random(std::uint64_t& state);

}  // namespace gpt
