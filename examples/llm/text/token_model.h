#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llm {

/// The tokens of a vocabulary in both directions.
class Vocabulary {
 public:
  void add(std::string token, std::int32_t id);
  [[nodiscard]] std::optional<std::int32_t> id(const std::string& token) const;
  [[nodiscard]] const std::string* token(std::int32_t id) const;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// The ids of the tokens of all bytes of a text, if the vocabulary has each.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> bytes(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

/// What turns one piece of text into tokens: BPE or Unigram. Immutable; threads may share one.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of the tokens of a piece. Parts that have no token and no unknown token are
  /// left out, as in `tokenizers`.
  virtual void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;
  [[nodiscard]] std::optional<std::int32_t> id(const std::string& token) const {
    return vocabulary_.id(token);
  }
  /// Null for an id that no token has.
  [[nodiscard]] const std::string* token(std::int32_t id) const { return vocabulary_.token(id); }
  [[nodiscard]] std::int64_t size() const { return vocabulary_.size(); }  ///< the largest id + 1

 protected:
  Vocabulary vocabulary_;
};

/// The model that the "model" of a tokenizer.json describes: BPE (also with byte fallback and
/// without a type, as old files have it) or Unigram.
/// @error std::invalid_argument for another type, dropout, or merges of tokens that do not exist
[[nodiscard]] std::unique_ptr<TokenModel> make_token_model(const nlohmann::json& description);

[[nodiscard]] std::unique_ptr<TokenModel> make_bpe(const nlohmann::json& description);
[[nodiscard]] std::unique_ptr<TokenModel> make_unigram(const nlohmann::json& description);

/// `<0xAB>`, the token of a byte in vocabularies with byte fallback.
[[nodiscard]] std::string byte_token(unsigned char byte);

}  // namespace llm
