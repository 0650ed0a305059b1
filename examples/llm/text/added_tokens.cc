#include "examples/llm/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

std::size_t previous_point(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

char32_t point_at(std::string_view text, std::size_t at) {
  return code_points(text.substr(at, utf8_length(text[at])))[0];
}

bool between_words(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin == 0 || !is_word(point_at(text, previous_point(text, begin)))) &&
         (end == text.size() || !is_word(point_at(text, end)));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer)
    : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    by_id_[token.id] = i;
    token.text = token.normalized ? normalizer(token.content) : token.content;
    add_pattern(token.normalized ? normalized_ : raw_, token.text, i);
  }
}

void AddedTokens::add_pattern(Patterns& patterns, const std::string& text, std::size_t token) {
  if (text.empty()) return;
  auto& list = patterns[text[0]];
  // Behind those that are as long: of equal texts, the first one is found.
  const auto place = std::find_if(list.begin(), list.end(), [&](const auto& other) {
    return other.first.size() < text.size();
  });
  list.insert(place, {text, token});
}

void AddedTokens::split_piece(const Piece& piece, const Patterns& patterns,
                              std::vector<Section>& out) const {
  const std::string_view text = piece.text;
  std::size_t done = 0;
  const auto text_until = [&](std::size_t end) {
    if (done < end)
      out.push_back({{std::string(text.substr(done, end - done)), piece.first && done == 0}, -1});
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto list = patterns.find(text[at]);
    const std::pair<std::string, std::size_t>* found = nullptr;
    if (list != patterns.end())
      for (const auto& pattern : list->second)
        if (text.substr(at).starts_with(pattern.first)) {
          found = &pattern;
          break;
        }
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[found->second];
    std::size_t begin = at, end = at + found->first.size();
    at = end;
    if (token.single_word && !between_words(text, begin, end)) continue;
    while (token.lstrip && begin > done && is_space(point_at(text, previous_point(text, begin))))
      begin = previous_point(text, begin);
    while (token.rstrip && end < text.size() && is_space(point_at(text, end)))
      end += utf8_length(text[end]);
    text_until(begin);
    out.push_back({{}, token.id});
    done = end;
  }
  text_until(text.size());
}

std::vector<Section> AddedTokens::split(std::string_view text, const Normalizer& normalizer) const {
  std::vector<Section> raw, result;
  split_piece({std::string(text), true}, raw_, raw);
  for (auto& section : raw) {
    if (section.id >= 0) {
      result.push_back(std::move(section));
    } else {
      split_piece({normalizer(section.piece.text), section.piece.first}, normalized_, result);
    }
  }
  return result;
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(const std::string& content) const {
  for (const auto& token : tokens_)
    if (token.content == content) return &token;
  return nullptr;
}

}  // namespace llm
