#include "examples/llm/text/pre_tokenizer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

/// How matches of a pattern divide a piece (SplitDelimiterBehavior of `tokenizers`).
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Behavior parse_behavior(const nlohmann::json& name) {
  const std::pair<const char*, Behavior> all[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  for (const auto& [text, behavior] : all)
    if (name == text) return behavior;
  throw std::invalid_argument("[tokenizer.json] unsupported behavior " + name.dump());
}

struct Part {
  ByteRange range;
  bool match = false;
};
using Finder = std::function<std::vector<ByteRange>(std::string_view)>;

/// Matches and what is between them, covering the whole text.
std::vector<Part> parts_of(std::string_view text, const std::vector<ByteRange>& matches,
                           bool invert) {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (const auto& range : matches) {
    if (done < range.first) parts.push_back({{done, range.first}, invert});
    parts.push_back({range, !invert});
    done = range.second;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, invert});
  return parts;
}

std::vector<Part> merged(const std::vector<Part>& parts, Behavior behavior) {
  std::vector<Part> result;
  if (behavior == Behavior::kIsolated) return parts;
  if (behavior == Behavior::kRemoved) {
    for (const auto& part : parts)
      if (!part.match) result.push_back(part);
    return result;
  }
  if (behavior == Behavior::kMergedWithNext) {
    bool previous = false;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->match && !previous && !result.empty()) {
        result.back().range.first = part->range.first;
      } else {
        result.push_back(*part);
      }
      previous = part->match;
    }
    std::reverse(result.begin(), result.end());
    return result;
  }
  bool previous = false;
  for (const auto& part : parts) {
    const bool join =
        behavior == Behavior::kContiguous ? part.match == previous : part.match && !previous;
    if (join && !result.empty()) {
      result.back().range.second = part.range.second;
    } else {
      result.push_back(part);
    }
    previous = part.match;
  }
  return result;
}

PreTokenizer make_split(Finder find, Behavior behavior, bool invert) {
  return [=, find = std::move(find)](std::vector<Piece> pieces) {
    std::vector<Piece> result;
    for (const auto& [text, first] : pieces)
      for (const auto& part : merged(parts_of(text, find(text), invert), behavior))
        result.push_back({text.substr(part.range.first, part.range.second - part.range.first),
                          first && part.range.first == 0});
    return result;
  };
}

/// Finds single code points.
Finder code_points_that(bool (*has_property)(char32_t)) {
  return [has_property](std::string_view text) {
    std::vector<ByteRange> ranges;
    std::size_t at = 0;
    for (const char32_t point : code_points(text)) {
      const std::size_t length = utf8_length(text[at]);
      if (has_property(point)) ranges.emplace_back(at, at + length);
      at += length;
    }
    return ranges;
  };
}

Finder matches_of(const std::string& pattern) {
  return [regex = Regex(pattern)](std::string_view text) { return regex.matches(text); };
}

PreTokenizer make_byte_level(const nlohmann::json& description) {
  const bool prefix = description.at("add_prefix_space");
  PreTokenizer split;
  // GPT-2's pattern, which is part of the definition of ByteLevel.
  if (description.value("use_regex", true))
    split = make_split(matches_of(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
                                  R"(\s+(?!\S)|\s+)"),
                       Behavior::kIsolated, false);
  return [=](std::vector<Piece> pieces) {
    for (auto& piece : pieces)
      if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    if (split) pieces = split(std::move(pieces));
    for (auto& piece : pieces) {
      std::string characters;
      for (const char c : piece.text)
        characters += byte_characters()[static_cast<unsigned char>(c)];
      piece.text = std::move(characters);
    }
    return pieces;
  };
}

std::string replace_spaces(const std::string& text, const std::string& replacement) {
  std::string result;
  for (const char c : text) {
    if (c == ' ') {
      result += replacement;
    } else {
      result += c;
    }
  }
  return result;
}

PreTokenizer make_metaspace(const nlohmann::json& description) {
  const auto replacement = description.at("replacement").get<std::string>();
  // Older files have "add_prefix_space" instead of "prepend_scheme".
  const std::string scheme = description.value(
      "prepend_scheme", description.value("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    throw std::invalid_argument("[tokenizer.json] unsupported prepend_scheme \"" + scheme + "\"");
  PreTokenizer split;
  if (description.value("split", true))
    split = make_split(matches_of(quoted_pattern(replacement)), Behavior::kMergedWithNext, false);
  return [=](std::vector<Piece> pieces) {
    for (auto& [text, first] : pieces) {
      text = replace_spaces(text, replacement);
      if ((scheme == "always" || (scheme == "first" && first)) && !text.starts_with(replacement))
        text.insert(0, replacement);
    }
    return split ? split(std::move(pieces)) : pieces;
  };
}

PreTokenizer make_sequence_of(const nlohmann::json& list) {
  std::vector<PreTokenizer> parts;
  for (const auto& part : list) parts.push_back(make_pre_tokenizer(part));
  return [parts = std::move(parts)](std::vector<Piece> pieces) {
    for (const auto& part : parts) pieces = part(std::move(pieces));
    return pieces;
  };
}

}  // namespace

const std::vector<std::string>& byte_characters() {
  static const std::vector<std::string> characters = [] {
    std::vector<std::string> result(256);
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                             (byte >= 0xAE && byte <= 0xFF);
      append_utf8(result[byte], printable ? byte : next++);
    }
    return result;
  }();
  return characters;
}

PreTokenizer make_pre_tokenizer(const nlohmann::json& description) {
  if (description.is_null()) return [](std::vector<Piece> pieces) { return pieces; };
  const auto type = description.at("type").get<std::string>();
  if (type == "Sequence") return make_sequence_of(description.at("pretokenizers"));
  if (type == "ByteLevel") return make_byte_level(description);
  if (type == "Metaspace") return make_metaspace(description);
  if (type == "Split") {
    const auto& pattern = description.at("pattern");
    const std::string regex = pattern.contains("String")
                                  ? quoted_pattern(pattern.at("String").get<std::string>())
                                  : pattern.at("Regex").get<std::string>();
    return make_split(matches_of(regex), parse_behavior(description.at("behavior")),
                      description.value("invert", false));
  }
  if (type == "Digits") {
    const bool alone = description.at("individual_digits");
    return make_split(code_points_that(is_numeric),
                      alone ? Behavior::kIsolated : Behavior::kContiguous, false);
  }
  if (type == "Punctuation")
    return make_split(code_points_that(is_punctuation),
                      parse_behavior(description.value("behavior", nlohmann::json("Isolated"))),
                      false);
  if (type == "Whitespace")
    return make_split(matches_of(R"(\w+|[^\w\s]+)"), Behavior::kRemoved, true);
  if (type == "WhitespaceSplit")
    return make_split(code_points_that(is_space), Behavior::kRemoved, false);
  throw std::invalid_argument("[tokenizer.json] unsupported pre_tokenizer \"" + type + "\"");
}

}  // namespace llm
