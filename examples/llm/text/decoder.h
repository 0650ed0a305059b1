#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llm {

/// Rewrites the tokens of a text; joined, they are the text. Threads may share one.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// The decoder that the "decoder" of a tokenizer.json describes: ByteLevel, ByteFallback, Fuse,
/// Strip, Replace, Metaspace and Sequence. Null puts a space between tokens, as `tokenizers` does.
/// @error std::invalid_argument with the name of another type
[[nodiscard]] Decoder make_decoder(const nlohmann::json& description);

}  // namespace llm
