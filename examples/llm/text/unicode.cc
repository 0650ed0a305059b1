#include "examples/llm/text/unicode.h"

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <cstdint>
#include <stdexcept>

namespace llm {
namespace {

void check(UErrorCode status, const std::string& what) {
  if (U_FAILURE(status)) throw std::runtime_error(what + ": ICU: " + u_errorName(status));
}

icu::StringPiece piece(std::string_view text) {
  return {text.data(), static_cast<std::int32_t>(text.size())};
}

icu::UnicodeString utf16(std::string_view text) {
  if (text.size() > INT32_MAX / 2)
    throw std::invalid_argument("[text] a text of " + std::to_string(text.size()) +
                                " bytes is too long");
  return icu::UnicodeString::fromUTF8(piece(text));
}

/// Turns increasing offsets of UTF-16 units into offsets of bytes of the same text.
class Offsets {
 public:
  explicit Offsets(std::string_view text) : text_(text) {}

  std::size_t bytes(std::int32_t unit) {
    while (unit_ < unit) {
      const std::size_t length = utf8_length(text_[byte_]);
      byte_ += length;
      unit_ += length == 4 ? 2 : 1;
    }
    return byte_;
  }

 private:
  std::string_view text_;
  std::int32_t unit_ = 0;
  std::size_t byte_ = 0;
};

/// The length of the valid sequence at the front, or 0; `invalid` is then the length of the maximal
/// part that is to be replaced. The second byte's bounds depend on the first (Unicode, table 3-7).
std::size_t sequence_length(std::string_view bytes, std::size_t& invalid) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  invalid = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = utf8_length(bytes[0]);
  for (std::size_t i = 1; i < length; ++i) {
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && lead == 0xE0) low = 0xA0;
    if (i == 1 && lead == 0xED) high = 0x9F;
    if (i == 1 && lead == 0xF0) low = 0x90;
    if (i == 1 && lead == 0xF4) high = 0x8F;
    if (i >= bytes.size() || byte(i) < low || byte(i) > high) return 0;
    invalid = i + 1;
  }
  return length;
}

}  // namespace

std::size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::u32string code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t invalid = 0;
    const std::size_t length = sequence_length(text.substr(i), invalid);
    if (length == 0)
      throw std::invalid_argument("[text] the byte at offset " + std::to_string(i) +
                                  " is not UTF-8");
    const auto lead = static_cast<unsigned char>(text[i]);
    char32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k)
      point = (point << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    points.push_back(point);
    i += length;
  }
  return points;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

std::string stripped(std::string_view text, bool left, bool right,
                     const std::function<bool(char32_t)>& goes) {
  const std::u32string points = code_points(text);
  std::size_t begin = 0, end = points.size();
  while (left && begin < end && goes(points[begin])) ++begin;
  while (right && begin < end && goes(points[end - 1])) --end;
  std::string result;
  for (std::size_t i = begin; i < end; ++i) append_utf8(result, points[i]);
  return result;
}

bool valid_utf8(std::string_view bytes) {
  for (std::size_t i = 0, invalid = 0; i < bytes.size();) {
    const std::size_t length = sequence_length(bytes.substr(i), invalid);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t invalid = 0;
    const std::size_t length = sequence_length(bytes.substr(i), invalid);
    if (length == 0) {
      text += "\uFFFD";
    } else {
      text.append(bytes, i, length);
    }
    i += length == 0 ? invalid : length;
  }
  return text;
}

bool is_space(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE);
}

bool is_word(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  return u_hasBinaryProperty(point, UCHAR_ALPHABETIC) ||
         (U_GET_GC_MASK(point) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL);
}

bool is_numeric(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0; }

bool is_punctuation(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  return (c < 0x80 && u_isgraph(point) && !u_isalnum(point)) ||
         (U_GET_GC_MASK(point) & U_GC_P_MASK) != 0;
}

std::u32string lowercase(char32_t c) {
  // The only code point whose unconditional lower case is longer (SpecialCasing.txt).
  if (c == 0x130) return U"i\u0307";
  return {static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)))};
}

std::string normalize(NormalForm form, std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = nullptr;
  switch (form) {
    case NormalForm::kNfc: normalizer = icu::Normalizer2::getNFCInstance(status); break;
    case NormalForm::kNfd: normalizer = icu::Normalizer2::getNFDInstance(status); break;
    case NormalForm::kNfkc: normalizer = icu::Normalizer2::getNFKCInstance(status); break;
    case NormalForm::kNfkd: normalizer = icu::Normalizer2::getNFKDInstance(status); break;
  }
  check(status, "[text] normalization");
  std::string result;
  normalizer->normalize(utf16(text), status).toUTF8String(result);
  check(status, "[text] normalization");
  return result;
}

std::vector<ByteRange> graphemes(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check(status, "[text] grapheme clusters");
  const icu::UnicodeString units = utf16(text);
  breaks->setText(units);
  Offsets offsets(text);
  std::vector<ByteRange> ranges;
  std::size_t begin = 0;
  for (std::int32_t unit = breaks->next(); unit != icu::BreakIterator::DONE;
       unit = breaks->next()) {
    const std::size_t end = offsets.bytes(unit);
    ranges.emplace_back(begin, end);
    begin = end;
  }
  return ranges;
}

Regex::Regex(const std::string& pattern) : text_(pattern) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError where{};
  pattern_.reset(icu::RegexPattern::compile(utf16(pattern), where, status));
  if (U_FAILURE(status))
    throw std::invalid_argument("[text] the regular expression \"" + pattern +
                                "\" is invalid at character " + std::to_string(where.offset) +
                                ": " + u_errorName(status));
}

std::vector<ByteRange> Regex::matches(std::string_view text) const {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString units = utf16(text);
  const std::unique_ptr<icu::RegexMatcher> matcher(
      static_cast<const icu::RegexPattern*>(pattern_.get())->matcher(units, status));
  check(status, "[text] the regular expression \"" + text_ + "\"");
  Offsets offsets(text);
  std::vector<ByteRange> found;
  while (matcher->find(status)) {
    const std::int32_t begin = matcher->start(status), end = matcher->end(status);
    if (begin == end) continue;
    const std::size_t first = offsets.bytes(begin);
    found.emplace_back(first, offsets.bytes(end));
  }
  check(status, "[text] matching \"" + text_ + "\" in " + std::to_string(text.size()) + " bytes");
  return found;
}

std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c)))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace llm
