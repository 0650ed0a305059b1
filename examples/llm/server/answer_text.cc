#include "examples/llm/server/answer_text.h"

#include <algorithm>
#include <utility>

namespace llm {

AnswerText::AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops)
    : decoder_(tokenizer), stops_(std::move(stops)) {}

std::string AnswerText::take(const std::string& text) {
  if (stopped_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  std::size_t keep = 0;  // the longest end of the text that begins a stop string
  for (const auto& stop : stops_)
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length)
      if (held_.ends_with(stop.substr(0, length))) keep = length;
  std::string ready = held_.substr(0, held_.size() - keep);
  held_.erase(0, ready.size());
  return ready;
}

std::string AnswerText::add(std::int32_t token) { return take(decoder_.add(token)); }

std::string AnswerText::finish() {
  std::string ready = take(decoder_.finish());
  if (!stopped_) ready += std::exchange(held_, {});
  return ready;
}

}  // namespace llm
