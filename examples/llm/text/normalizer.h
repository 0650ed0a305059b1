#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace llm {

/// A function from valid UTF-8 to valid UTF-8. Threads may share one.
using Normalizer = std::function<std::string(std::string_view)>;

/// The normalizer that the "normalizer" of a tokenizer.json describes: NFC, NFD, NFKC, NFKD,
/// Lowercase, Prepend, Replace, Strip, Precompiled and Sequence. Null is the identity.
/// @error std::invalid_argument with the name of another type, or with the field that is missing
[[nodiscard]] Normalizer make_normalizer(const nlohmann::json& description);

/// The text with each match of a "pattern", {"String": ...} or {"Regex": ...}, replaced.
[[nodiscard]] Normalizer make_replacement(const nlohmann::json& pattern,
                                          const std::string& content);

}  // namespace llm
