#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llm {

/// A part of a text that the model tokenizes by itself.
struct Piece {
  std::string text;
  bool first = false;  ///< it begins where the whole text begins
};

/// Splits pieces further and rewrites them. Threads may share one.
using PreTokenizer = std::function<std::vector<Piece>(std::vector<Piece>)>;

/// The pre-tokenizer that the "pre_tokenizer" of a tokenizer.json describes: ByteLevel, Split,
/// Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit and Sequence. Null is the identity.
/// @error std::invalid_argument with the name of another type or of an unknown behavior
[[nodiscard]] PreTokenizer make_pre_tokenizer(const nlohmann::json& description);

/// The character that the byte-level tokenizers write for each byte (GPT-2, bytes_to_unicode).
[[nodiscard]] const std::vector<std::string>& byte_characters();

}  // namespace llm
