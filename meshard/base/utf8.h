// UTF-8 decoding, one sequence at a time.
#pragma once
#include <cstddef>
#include <string_view>

namespace meshard {

/// The length of the UTF-8 sequence at the start of `text`; 0 if it is not well-formed. See the
/// table "Well-Formed UTF-8 Byte Sequences" of the Unicode Standard, 3.9.
/// @pre text is not empty
std::size_t utf8_length(std::string_view text);

}  // namespace meshard
