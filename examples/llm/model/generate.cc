// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/generate.h"

#include <algorithm>

#include "meshard/meshard.h"

namespace llm {

using namespace meshard;

Sequences::Sequences(Runner& runner, std::size_t count, std::int64_t most)
    : runner_(runner), pages_(count), lengths_(count) {
  const RunnerLimits& limits = runner.limits();
  std::int64_t each = (most + limits.page_tokens - 1) / limits.page_tokens;
  auto needed = each * static_cast<std::int64_t>(count);
  if (most > limits.context || needed > limits.pages ||
      static_cast<std::int64_t>(count) > limits.sequences)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[llm] ", count, " sequences of ", most, " tokens need ", needed,
                    " pages; the cache has ", limits.pages, " for ", limits.sequences,
                    " sequences of at most ", limits.context, " tokens"));
  std::int32_t next = 0;
  for (std::vector<std::int32_t>& pages : pages_)
    for (std::int64_t i = 0; i < each; ++i) pages.push_back(next++);
}

std::vector<std::vector<float>> Sequences::append(
    const std::vector<std::vector<std::int32_t>>& tokens, std::int64_t logits) {
  std::int64_t chunk = runner_.limits().chunk_tokens;
  std::vector<std::vector<float>> all(tokens.size());
  std::vector<std::int64_t> done(tokens.size());
  while (true) {
    std::vector<Chunk> chunks;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto size = static_cast<std::int64_t>(tokens[i].size());
      std::int64_t count = std::min(chunk, size - done[i]);
      if (count < 1) continue;
      auto first = tokens[i].begin() + done[i];
      done[i] += count;
      // Of the wanted ones, those in this chunk.
      std::int64_t wanted = std::clamp<std::int64_t>(done[i] - (size - logits), 0, count);
      chunks.push_back({{first, first + count}, lengths_[i], pages_[i], wanted});
      lengths_[i] += count;
      numbers.push_back(i);
    }
    if (chunks.empty()) return all;
    std::vector<std::vector<float>> found = runner_.step(chunks);
    for (std::size_t k = 0; k < numbers.size(); ++k)
      all[numbers[k]].insert(all[numbers[k]].end(), found[k].begin(), found[k].end());
  }
}

std::vector<std::vector<std::int32_t>> generate_greedily(
    Runner& runner, const std::vector<std::vector<std::int32_t>>& prompts, std::int64_t count,
    std::span<const std::int64_t> end_tokens) {
  std::int64_t most = 0;
  for (const auto& prompt : prompts) {
    if (prompt.empty()) throw Error(ErrorCode::kInvalidArgument, "[llm] a prompt is empty");
    most = std::max(most, static_cast<std::int64_t>(prompt.size()) + count);
  }
  Sequences sequences(runner, prompts.size(), most);
  std::vector<std::vector<std::int32_t>> answers(prompts.size()), next = prompts;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::vector<float>> logits = sequences.append(next);
    bool any = false;
    for (std::size_t k = 0; k < prompts.size(); ++k) {
      next[k].clear();
      if (logits[k].empty()) continue;  // it has ended
      auto best = std::max_element(logits[k].begin(), logits[k].end());
      auto token = static_cast<std::int32_t>(best - logits[k].begin());
      answers[k].push_back(token);
      if (std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end()) continue;
      next[k] = {token};
      any = true;
    }
    if (!any) break;
  }
  return answers;
}

}  // namespace llm
