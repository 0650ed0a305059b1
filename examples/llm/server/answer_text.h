#pragma once

#include <string>
#include <vector>

#include "examples/llm/text/tokenizer.h"

namespace llm {

/// The text of an answer as its tokens come. It ends before the first stop string, and text that
/// may be the beginning of one is held back.
class AnswerText {
 public:
  /// @pre the tokenizer outlives it
  AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops);

  /// The text that can be sent after this token.
  std::string add(std::int32_t token);
  /// The rest of the text, when no token follows.
  std::string finish();
  [[nodiscard]] bool stopped() const { return stopped_; }  ///< a stop string was found

 private:
  std::string take(const std::string& text);

  StreamDecoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace llm
