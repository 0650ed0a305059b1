#include "examples/llm/text/token_model.h"

#include <stdexcept>
#include <utility>

namespace llm {

std::string byte_token(unsigned char byte) {
  const char* digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

void Vocabulary::add(std::string token, std::int32_t id) {
  if (id < 0 || id > (1 << 28))
    throw std::invalid_argument("[tokenizer.json] token \"" + token + "\": invalid id " +
                                std::to_string(id));
  if (tokens_.size() <= static_cast<std::size_t>(id))
    tokens_.resize(static_cast<std::size_t>(id) + 1);
  ids_[token] = id;
  tokens_[static_cast<std::size_t>(id)] = std::move(token);
}

std::optional<std::int32_t> Vocabulary::id(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  const auto& token = tokens_[static_cast<std::size_t>(id)];
  return token ? &*token : nullptr;
}

std::optional<std::vector<std::int32_t>> Vocabulary::bytes(std::string_view text) const {
  std::vector<std::int32_t> result;
  for (const char c : text) {
    const auto found = id(byte_token(static_cast<unsigned char>(c)));
    if (!found) return std::nullopt;
    result.push_back(*found);
  }
  return result;
}

std::unique_ptr<TokenModel> make_token_model(const nlohmann::json& description) {
  std::string type = description.value("type", "");
  // Files that were written before models had a type.
  if (type.empty()) type = description.contains("merges") ? "BPE" : "Unigram";
  if (type == "BPE") return make_bpe(description);
  if (type == "Unigram") return make_unigram(description);
  throw std::invalid_argument("[tokenizer.json] unsupported model \"" + type + "\"");
}

}  // namespace llm
