// Training data for tests of the GPT example.
#pragma once
#include <string>

#include "examples/gpt/text.h"
#include "meshard/base/cat.h"

namespace gpt {

/// A text that needs no file, and that a small model learns.
inline Text counting_text() {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += meshard::cat("line ", i % 50, " of the book\n");
  return {text, text.substr(0, 4000), "lines"};
}

}  // namespace gpt
