#include "examples/llm/text/normalizer.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

std::string replaced(std::string_view text, const std::vector<ByteRange>& ranges,
                     const std::string& content) {
  std::string result;
  std::size_t done = 0;
  for (const auto& [begin, end] : ranges) {
    result.append(text, done, begin - done);
    result += content;
    done = end;
  }
  result.append(text, done);
  return result;
}

std::vector<ByteRange> occurrences(std::string_view text, const std::string& part) {
  std::vector<ByteRange> ranges;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ranges.emplace_back(at, at + part.size());
  return ranges;
}

std::string from_base64(const std::string& encoded) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned value = 0, bits = 0;
  for (const char c : encoded) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    if (digit == std::string::npos)
      throw std::invalid_argument("[tokenizer.json] the precompiled_charsmap is not base64");
    value = (value << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>(value >> bits & 0xFF));
    }
  }
  return bytes;
}

/// SentencePiece's compiled normalization: a double array of byte prefixes (Darts), and the
/// replacements that its values point to, each ended by a zero byte.
class CharacterMap {
 public:
  explicit CharacterMap(const std::string& blob) {
    std::uint32_t size = 0;
    if (blob.size() >= 4) size = word(blob, 0);
    if (blob.size() < 4 || size % 4 != 0 || size > blob.size() - 4 || size == 0)
      throw std::invalid_argument("[tokenizer.json] the precompiled_charsmap has " +
                                  std::to_string(blob.size()) + " bytes, which hold no trie");
    for (std::size_t i = 0; i < size; i += 4) units_.push_back(word(blob, 4 + i));
    replacements_ = blob.substr(4 + size);
  }

  /// A grapheme of less than 6 bytes is replaced as a whole by the replacement of its shortest
  /// prefix that has one; otherwise each code point is replaced alone. This is what `tokenizers`
  /// does.
  [[nodiscard]] std::string operator()(std::string_view text) const {
    std::string result;
    std::string_view replacement;
    for (const auto& [begin, end] : graphemes(text)) {
      const std::string_view grapheme = text.substr(begin, end - begin);
      if (grapheme.size() < 6 && find(grapheme, replacement)) {
        result += replacement;
        continue;
      }
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::string_view point = grapheme.substr(i, utf8_length(grapheme[i]));
        result += find(point, replacement) ? replacement : point;
        i += point.size();
      }
    }
    return result;
  }

 private:
  static std::uint32_t word(const std::string& blob, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t k = 4; k-- > 0;) value = value << 8 | static_cast<unsigned char>(blob[at + k]);
    return value;
  }
  static std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

  bool find(std::string_view key, std::string_view& replacement) const {
    std::size_t node = offset(units_[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size()) return false;
      const std::uint32_t unit = units_[node];
      if ((unit & 0x800000FFu) != byte) return false;
      node ^= offset(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (node >= units_.size()) return false;
      const std::size_t at = units_[node] & 0x7FFFFFFFu;
      if (at > replacements_.size()) return false;
      replacement = std::string_view(replacements_).substr(at);
      replacement = replacement.substr(0, replacement.find('\0'));
      return true;
    }
    return false;
  }

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

Normalizer make_sequence(const nlohmann::json& list) {
  std::vector<Normalizer> parts;
  for (const auto& part : list) parts.push_back(make_normalizer(part));
  return [parts = std::move(parts)](std::string_view text) {
    std::string result(text);
    for (const auto& part : parts) result = part(result);
    return result;
  };
}

std::string lowered(std::string_view text) {
  std::string result;
  for (const char32_t point : code_points(text))
    for (const char32_t lower : lowercase(point)) append_utf8(result, lower);
  return result;
}

}  // namespace

Normalizer make_replacement(const nlohmann::json& pattern, const std::string& content) {
  if (pattern.contains("String")) {
    const auto part = pattern.at("String").get<std::string>();
    if (part.empty()) throw std::invalid_argument("[tokenizer.json] Replace: the pattern is empty");
    return [part, content](std::string_view text) {
      return replaced(text, occurrences(text, part), content);
    };
  }
  return [regex = Regex(pattern.at("Regex").get<std::string>()), content](std::string_view text) {
    return replaced(text, regex.matches(text), content);
  };
}

Normalizer make_normalizer(const nlohmann::json& description) {
  if (description.is_null()) return [](std::string_view text) { return std::string(text); };
  const auto type = description.at("type").get<std::string>();
  const auto form = [](NormalForm value) -> Normalizer {
    return [value](std::string_view text) { return normalize(value, text); };
  };
  if (type == "NFC") return form(NormalForm::kNfc);
  if (type == "NFD") return form(NormalForm::kNfd);
  if (type == "NFKC") return form(NormalForm::kNfkc);
  if (type == "NFKD") return form(NormalForm::kNfkd);
  if (type == "Lowercase") return lowered;
  if (type == "Sequence") return make_sequence(description.at("normalizers"));
  if (type == "Replace")
    return make_replacement(description.at("pattern"), description.at("content"));
  if (type == "Prepend") {
    const auto prefix = description.at("prepend").get<std::string>();
    return [prefix](std::string_view text) {
      return text.empty() ? std::string() : prefix + std::string(text);
    };
  }
  if (type == "Strip") {
    const bool left = description.at("strip_left"), right = description.at("strip_right");
    return [left, right](std::string_view text) { return stripped(text, left, right); };
  }
  if (type == "Precompiled") {
    const auto& map = description.at("precompiled_charsmap");
    // SentencePiece's "identity" has no map.
    if (map.is_null() || map.get<std::string>().empty()) return make_normalizer(nullptr);
    return CharacterMap(from_base64(map));
  }
  throw std::invalid_argument("[tokenizer.json] unsupported normalizer \"" + type + "\"");
}

}  // namespace llm
