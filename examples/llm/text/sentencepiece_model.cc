#include <sentencepiece_processor.h>

#include <stdexcept>
#include <utility>

#include "examples/llm/text/added_tokens.h"
#include "examples/llm/text/tokenizer.h"
#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& path, bool add_bos, bool add_eos)
      : add_bos_(add_bos), add_eos_(add_eos) {
    const auto status = processor_.Load(path);
    if (!status.ok())
      throw std::runtime_error("[tokenizer.model] cannot load " + path + ": " + status.ToString());
    if (add_bos && processor_.bos_id() < 0)
      throw std::invalid_argument("[tokenizer.model] " + path +
                                  " has no beginning-of-sequence token, which add_bos_token wants");
    if (add_eos && processor_.eos_id() < 0)
      throw std::invalid_argument("[tokenizer.model] " + path +
                                  " has no end-of-sequence token, which add_eos_token wants");
    std::vector<AddedToken> control;
    for (int id = 0; id < processor_.GetPieceSize(); ++id)
      if (processor_.IsControl(id))
        control.push_back(
            {.id = id, .content = processor_.IdToPiece(id), .special = true, .text = {}});
    added_ = AddedTokens(std::move(control), make_normalizer(nullptr));
  }

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 bool special) const override {
    if (!valid_utf8(text)) (void)code_points(text);  // throws with the offset
    std::vector<std::int32_t> ids;
    if (special && add_bos_) ids.push_back(processor_.bos_id());
    for (const auto& section : added_.split(text, make_normalizer(nullptr))) {
      if (section.id >= 0) {
        ids.push_back(section.id);
        continue;
      }
      std::vector<int> part;
      const auto status = processor_.Encode(section.piece.text, &part);
      if (!status.ok()) throw std::runtime_error("[tokenizer.model] " + status.ToString());
      ids.insert(ids.end(), part.begin(), part.end());
    }
    if (special && add_eos_) ids.push_back(processor_.eos_id());
    return ids;
  }

  [[nodiscard]] std::string decode(const std::vector<std::int32_t>& ids,
                                   bool skip_special) const override {
    // SentencePiece writes nothing for control tokens, so the text is decoded in parts between
    // them.
    std::string text;
    std::vector<int> part;
    const auto flush = [&] {
      std::string piece;
      const auto status = processor_.Decode(part, &piece);
      if (!status.ok()) throw std::runtime_error("[tokenizer.model] " + status.ToString());
      text += piece;
      part.clear();
    };
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= size()) continue;
      if (processor_.IsControl(id)) {
        if (skip_special) continue;
        flush();
        text += processor_.IdToPiece(id);
      } else {
        part.push_back(id);
      }
    }
    flush();
    return text;
  }

  [[nodiscard]] std::optional<std::int32_t> id(const std::string& token) const override {
    const int id = processor_.PieceToId(token);
    // PieceToId answers the unknown token for others.
    return processor_.IdToPiece(id) == token ? std::optional(id) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const override {
    if (id < 0 || id >= size()) return std::nullopt;
    return processor_.IdToPiece(id);
  }
  [[nodiscard]] std::int64_t size() const override { return processor_.GetPieceSize(); }

 private:
  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens added_;
  bool add_bos_, add_eos_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path, bool add_bos, bool add_eos) {
  return std::make_unique<SentencePieceTokenizer>(path, add_bos, add_eos);
}

}  // namespace llm
