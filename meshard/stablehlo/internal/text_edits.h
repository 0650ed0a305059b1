// Edits of a module's text.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// Replaces ranges of a text; of overlapping ones, that which begins first.
class TextEdits {
 public:
  /// @param text outlives the edits
  explicit TextEdits(std::string_view text) : text_(text) {}
  void replace(TextRange range, std::string by) { edits_.emplace_back(range, std::move(by)); }
  bool empty() const { return edits_.empty(); }
  std::string apply() { return apply({0, text_.size()}); }
  /// The same for a part of the text.
  std::string apply(TextRange part) {
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    std::string out;
    std::size_t done = part.begin;
    for (const auto& [range, by] : edits_) {
      if (range.begin < done) continue;  // inside of what is removed
      if (range.begin > part.end || range.end > part.end) break;
      out.append(text_.substr(done, range.begin - done)).append(by);
      done = range.end;
    }
    return out.append(text_.substr(done, part.end - done));
  }

 private:
  std::string_view text_;
  std::vector<std::pair<TextRange, std::string>> edits_;
};

}  // namespace meshard::stablehlo
