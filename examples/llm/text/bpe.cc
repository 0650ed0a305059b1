#include <queue>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/token_model.h"
#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

struct Merge {
  std::int32_t rank = 0;
  std::int32_t id = 0;
};

/// A token of a word, in a list that is linked by positions.
struct Symbol {
  std::int32_t id = 0;
  std::int32_t previous = -1;
  std::int32_t next = -1;
  bool alive = true;
};

struct Candidate {
  std::int32_t rank = 0;
  std::int32_t position = 0;
  std::int32_t id = 0;  ///< the token that the merge makes
  // The queue's top is the lowest rank, then the leftmost position.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): of all pairs of neighbors, the one
/// whose merge was learned first is joined, until none is left.
class Bpe : public TokenModel {
 public:
  explicit Bpe(const nlohmann::json& description) {
    const auto& dropout = description.value("dropout", nlohmann::json());
    if (!dropout.is_null() && dropout.get<double>() != 0)
      throw std::invalid_argument("[tokenizer.json] BPE: dropout " + dropout.dump() +
                                  " makes random tokens, which is unsupported");
    const auto text = [&](const char* key) {
      const auto value = description.value(key, nlohmann::json());
      return value.is_null() ? std::string() : value.get<std::string>();
    };
    prefix_ = text("continuing_subword_prefix");
    suffix_ = text("end_of_word_suffix");
    fuse_unknown_ = description.value("fuse_unk", false);
    byte_fallback_ = description.value("byte_fallback", false);
    ignore_merges_ = description.value("ignore_merges", false);
    for (const auto& [token, id] : description.at("vocab").items()) vocabulary_.add(token, id);
    if (const std::string unknown = text("unk_token"); !unknown.empty()) unknown_ = known(unknown);
    for (const auto& merge : description.at("merges")) add_merge(merge);
  }

  void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    if (piece.empty()) return;
    if (ignore_merges_) {
      if (const auto whole = vocabulary_.id(std::string(piece))) return ids.push_back(*whole);
    }
    std::vector<std::int32_t> word = characters(piece);
    if (word.size() > 1) word = merge(word);
    ids.insert(ids.end(), word.begin(), word.end());
  }

 private:
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  [[nodiscard]] std::int32_t known(const std::string& token) const {
    const auto found = vocabulary_.id(token);
    if (!found)
      throw std::invalid_argument("[tokenizer.json] BPE: \"" + token +
                                  "\" is not a token of the vocabulary");
    return *found;
  }

  void add_merge(const nlohmann::json& merge) {
    std::string left, right;
    if (merge.is_string()) {  // "left right", before the form with two strings
      const auto text = merge.get<std::string>();
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        throw std::invalid_argument("[tokenizer.json] BPE: invalid merge \"" + text + "\"");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else {
      left = merge.at(0);
      right = merge.at(1);
    }
    const std::string end = right.starts_with(prefix_) ? right.substr(prefix_.size()) : right;
    const auto rank = static_cast<std::int32_t>(merges_.size());
    merges_[key(known(left), known(right))] = {rank, known(left + end)};
  }

  [[nodiscard]] std::vector<std::int32_t> characters(std::string_view piece) const {
    std::vector<std::int32_t> word;
    bool unknown_waits = false;  // an unknown token may become longer
    const auto flush = [&] {
      if (unknown_waits) word.push_back(*unknown_);
      unknown_waits = false;
    };
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t length = utf8_length(piece[at]);
      std::string text(piece.substr(at, length));
      if (at != 0) text.insert(0, prefix_);
      at += length;
      if (at >= piece.size()) text += suffix_;
      if (const auto found = vocabulary_.id(text)) {
        flush();
        word.push_back(*found);
        continue;
      }
      if (byte_fallback_) {
        if (const auto bytes = vocabulary_.bytes(text)) {
          word.insert(word.end(), bytes->begin(), bytes->end());
          continue;
        }
      }
      if (!unknown_) continue;
      if (!fuse_unknown_) flush();
      unknown_waits = true;
    }
    flush();
    return word;
  }

  [[nodiscard]] std::vector<std::int32_t> merge(const std::vector<std::int32_t>& word) const {
    const auto count = static_cast<std::int32_t>(word.size());
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    for (std::int32_t i = 0; i < count; ++i)
      symbols.push_back({word[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
    std::priority_queue<Candidate> queue;
    const auto look = [&](std::int32_t left) {
      const Symbol& symbol = at(left);
      if (symbol.next < 0) return;
      const auto found = merges_.find(key(symbol.id, at(symbol.next).id));
      if (found != merges_.end()) queue.push({found->second.rank, left, found->second.id});
    };
    for (std::int32_t i = 0; i + 1 < count; ++i) look(i);
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      Symbol& left = at(top.position);
      if (!left.alive || left.next < 0) continue;
      Symbol& right = at(left.next);
      const auto found = merges_.find(key(left.id, right.id));
      if (found == merges_.end() || found->second.id != top.id) continue;  // an outdated pair
      left.id = top.id;
      right.alive = false;
      left.next = right.next;
      if (left.next >= 0) at(left.next).previous = top.position;
      if (left.previous >= 0) look(left.previous);
      look(top.position);
    }
    std::vector<std::int32_t> result;
    for (const Symbol& symbol : symbols)
      if (symbol.alive) result.push_back(symbol.id);
    return result;
  }

  std::unordered_map<std::uint64_t, Merge> merges_;
  std::string prefix_, suffix_;
  std::optional<std::int32_t> unknown_;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(const nlohmann::json& description) {
  return std::make_unique<Bpe>(description);
}

}  // namespace llm
