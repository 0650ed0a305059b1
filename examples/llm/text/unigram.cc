#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/token_model.h"
#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

/// How much less likely a character without a token is than the least likely token (SentencePiece,
/// kUnkPenalty).
constexpr double kUnknownPenalty = 10;

/// A unigram language model (Kudo 2018, arXiv:1804.10959): the tokens whose log-probabilities have
/// the largest sum.
class Unigram : public TokenModel {
 public:
  explicit Unigram(const nlohmann::json& description) {
    byte_fallback_ = description.value("byte_fallback", false);
    const auto& list = description.at("vocab");
    if (list.empty()) throw std::invalid_argument("[tokenizer.json] Unigram: the vocab is empty");
    nodes_.emplace_back();
    lowest_ = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto token = list[i].at(0).get<std::string>();
      scores_.push_back(list[i].at(1));
      lowest_ = std::min(lowest_, scores_.back());
      vocabulary_.add(token, static_cast<std::int32_t>(i));
      insert(token, static_cast<std::int32_t>(i));
    }
    const auto& unknown = description.value("unk_id", nlohmann::json());
    if (!unknown.is_null()) {
      unknown_ = unknown.get<std::int32_t>();
      if (!vocabulary_.token(*unknown_))
        throw std::invalid_argument("[tokenizer.json] Unigram: unk_id " + unknown.dump() +
                                    " is not a token of the vocab");
    }
  }

  void tokenize(std::string_view piece, std::vector<std::int32_t>& ids) const override {
    for (const std::string& part : best_parts(piece)) {
      if (const auto found = vocabulary_.id(part)) {
        ids.push_back(*found);
        continue;
      }
      if (byte_fallback_) {
        if (const auto bytes = vocabulary_.bytes(part)) {
          ids.insert(ids.end(), bytes->begin(), bytes->end());
          continue;
        }
      }
      ids.push_back(unknown());
    }
  }

 private:
  /// A node of the trie of all tokens, by bytes.
  struct Node {
    std::vector<std::pair<unsigned char, std::int32_t>> children;  // sorted
    std::int32_t id = -1;
  };
  /// The best tokens of the text before a position.
  struct Best {
    double score = 0;
    std::size_t begin = 0;  ///< of the last token
    std::int32_t id = -1;   ///< -1: there is no path to this position
  };

  [[nodiscard]] std::int32_t unknown() const {
    if (!unknown_)
      throw std::invalid_argument(
          "[tokenizer.json] Unigram: a character has no token, and the model has no unk_id");
    return *unknown_;
  }

  [[nodiscard]] std::int32_t child(std::int32_t node, unsigned char byte) const {
    const auto& children = nodes_[static_cast<std::size_t>(node)].children;
    const auto found = std::lower_bound(children.begin(), children.end(), std::pair(byte, 0));
    return found != children.end() && found->first == byte ? found->second : -1;
  }

  void insert(const std::string& token, std::int32_t id) {
    std::int32_t node = 0;
    for (const char c : token) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t next = child(node, byte);
      if (next < 0) {
        next = static_cast<std::int32_t>(nodes_.size());
        nodes_.emplace_back();
        auto& children = nodes_[static_cast<std::size_t>(node)].children;
        children.insert(std::lower_bound(children.begin(), children.end(), std::pair(byte, 0)),
                        {byte, next});
      }
      node = next;
    }
    nodes_[static_cast<std::size_t>(node)].id = id;
  }

  /// Viterbi's algorithm. Neighboring characters without a token become one part.
  [[nodiscard]] std::vector<std::string> best_parts(std::string_view text) const {
    std::vector<Best> best(text.size() + 1);
    const auto offer = [&](std::size_t end, double score, std::size_t begin, std::int32_t id) {
      if (best[end].id < 0 || score > best[end].score) best[end] = {score, begin, id};
    };
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = utf8_length(text[begin]);
      const double so_far = best[begin].score;
      bool has_character = false;
      std::int32_t node = 0;
      for (std::size_t end = begin; end < text.size();) {
        node = child(node, static_cast<unsigned char>(text[end++]));
        if (node < 0) break;
        const std::int32_t id = nodes_[static_cast<std::size_t>(node)].id;
        if (id < 0) continue;
        offer(end, scores_[static_cast<std::size_t>(id)] + so_far, begin, id);
        has_character = has_character || end - begin == length;
      }
      if (!has_character)
        offer(begin + length, lowest_ - kUnknownPenalty + so_far, begin, unknown());
      begin += length;
    }
    std::vector<std::string> parts;
    bool after_unknown = false;
    for (std::size_t end = text.size(); end > 0;) {
      const auto& [score, begin, id] = best[end];
      const bool is_unknown = unknown_ && id == *unknown_;
      const std::string part(text.substr(begin, end - begin));
      if (is_unknown && after_unknown) {
        parts.back().insert(0, part);
      } else {
        parts.push_back(part);
      }
      after_unknown = is_unknown;
      end = begin;
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

  std::vector<double> scores_;
  double lowest_ = 0;
  std::vector<Node> nodes_;
  std::optional<std::int32_t> unknown_;
  bool byte_fallback_ = false;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const nlohmann::json& description) {
  return std::make_unique<Unigram>(description);
}

}  // namespace llm
