#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

/// What turns text into tokens and back. Immutable; threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The tokens of a text. `special`: with those that the model expects around a text, such as the
  /// beginning-of-sequence token; without it for text that a chat template has written.
  /// @error std::invalid_argument if the text is not UTF-8
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text,
                                                         bool special) const = 0;
  /// The text of tokens, without special ones if `skip_special`. Bytes that are not UTF-8 become
  /// U+FFFD; ids without a token are left out.
  [[nodiscard]] virtual std::string decode(const std::vector<std::int32_t>& ids,
                                           bool skip_special) const = 0;
  [[nodiscard]] virtual std::optional<std::int32_t> id(const std::string& token) const = 0;
  /// The token as the vocabulary writes it; nothing for an id without a token.
  [[nodiscard]] virtual std::optional<std::string> token(std::int32_t id) const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;  ///< the largest id + 1
};

/// The tokenizer that a tokenizer.json describes (`tokenizers` 0.23).
/// @error std::invalid_argument with the name of a component that is not supported
[[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const nlohmann::json& description);

/// The tokenizer of SentencePiece's .model file. `add_bos` and `add_eos` are those of
/// tokenizer_config.json. Control tokens in the text are found as in a tokenizer.json.
/// @error std::runtime_error if the file cannot be read
[[nodiscard]] std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path, bool add_bos,
                                                            bool add_eos);

/// The tokenizer of a downloaded folder: tokenizer.json, or else tokenizer.model with the settings
/// of tokenizer_config.json.
/// @error std::runtime_error if the folder has neither
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder);

/// The contents of a JSON file.
/// @error std::runtime_error with its path if it cannot be read or is not JSON
[[nodiscard]] nlohmann::json read_json(const std::string& path);

/// Decodes tokens one by one. The pieces that it returns are whole characters; joined, they are the
/// text of all tokens, unless invalid bytes follow a character that was returned already.
class StreamDecoder {
 public:
  /// @pre the tokenizer outlives it
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  /// The text that is complete with this token; empty within a character.
  std::string add(std::int32_t id);
  /// The rest, in which incomplete characters are U+FFFD.
  std::string finish();

 private:
  std::string take(bool all);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> window_;  ///< the tokens of the last piece, and those after it
  std::size_t returned_ = 0;          ///< how many of them are in pieces that were returned
  std::string prefix_;                ///< the text of these
};

}  // namespace llm
