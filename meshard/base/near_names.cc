#include "meshard/base/near_names.h"

#include <algorithm>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      std::size_t changed = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, changed});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

std::vector<std::string> near_names(std::string_view word, std::span<const std::string> names,
                                    std::size_t most) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& name : names) {
    bool contains = !word.empty() && name.find(word) != std::string::npos;
    found.emplace_back(contains ? 1 : edit_distance(word, name), name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (auto& [distance, name] : found)
    if (out.size() < most) out.push_back(std::move(name));
  return out;
}

std::string nearest_text(std::string_view word, std::span<const std::string> names) {
  const std::vector<std::string> near = near_names(word, names);
  if (near.empty()) return "there are no names";
  std::string text = near.size() == 1 ? "the nearest name is " : "the nearest names are ";
  for (std::size_t i = 0; i < near.size(); ++i) text += cat(i ? ", \"" : "\"", near[i], "\"");
  return text;
}

// A star first matches the empty string; on a mismatch, the last star takes one more character.
bool matches_name(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace meshard
