// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/paged_runner.h"

#include <algorithm>
#include <map>
#include <utility>

namespace llm {

using namespace meshard;

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "[llm.Runner] " + what);
}

std::int64_t rounded_up(std::int64_t count, std::int64_t base, std::int64_t most) {
  std::int64_t size = 1;
  while (size < count) size *= base;
  return std::min(size, most);
}

RunnerLimits checked(RunnerLimits limits, const Config& config) {
  if (limits.vocabulary == 0) limits.vocabulary = config.vocabulary;
  if (limits.context == 0) limits.context = config.context;
  for (std::int64_t each :
       {limits.context, limits.page_tokens, limits.pages, limits.sequences, limits.chunk_tokens})
    if (each < 1) refuse(cat("a limit is ", each, ", but must be positive"));
  if (limits.vocabulary != config.vocabulary)
    refuse(cat("a vocabulary of ", limits.vocabulary, ", but the model has ", config.vocabulary,
               " tokens"));
  if (limits.pages * limits.page_tokens < limits.context)
    refuse(cat(limits.pages, " pages of ", limits.page_tokens,
               " tokens do not hold the context of ", limits.context, " tokens"));
  return limits;
}

}  // namespace

PagedRunner::PagedRunner(Model model, Config config, nn::AxisRules rules, RunnerLimits limits)
    : model_(std::move(model)),
      config_(std::move(config)),
      rules_(std::move(rules)),
      limits_(checked(limits, config_)),
      cache_(make_paged_cache(config_, rules_, limits_.pages, limits_.page_tokens,
                              model_.model.norm.weight.dtype())),
      step_(jit(Step([config = config_, rules = rules_](
                         const Model& weights, const PagedTokens& rows, const PagedCache& cache,
                         const Static<bool>& all) {
                  return paged_step(weights, config, rows, cache, rules, all);
                }),
                {.name = "paged_step", .donate = {2}})) {}

void PagedRunner::check(const Chunk& chunk) const {
  auto count = static_cast<std::int64_t>(chunk.tokens.size());
  auto pages = static_cast<std::int64_t>(chunk.pages.size());
  if (count < 1 || count > limits_.chunk_tokens)
    refuse(cat("a chunk has ", count, " tokens, not 1 to ", limits_.chunk_tokens));
  if (chunk.start < 0 || chunk.start + count > limits_.context)
    refuse(cat("a sequence has ", chunk.start, " + ", count, " tokens; the context is ",
               limits_.context));
  if (pages * limits_.page_tokens < chunk.start + count)
    refuse(cat(pages, " pages of ", limits_.page_tokens, " tokens do not hold ", chunk.start, " + ",
               count, " tokens"));
  if (chunk.logits < 0 || chunk.logits > count)
    refuse(cat("logits of the last ", chunk.logits, " tokens of a chunk of ", count));
  for (std::int32_t page : chunk.pages)
    if (page < 0 || page >= limits_.pages)
      refuse(cat("page ", page, "; there are ", limits_.pages));
  for (std::int32_t token : chunk.tokens)
    if (token < 0 || token >= limits_.vocabulary)
      refuse(cat("token ", token, "; the vocabulary has ", limits_.vocabulary));
}

std::vector<std::vector<float>> PagedRunner::step(const std::vector<Chunk>& chunks) {
  if (static_cast<std::int64_t>(chunks.size()) > limits_.sequences)
    refuse(cat(chunks.size(), " chunks; the limit is ", limits_.sequences));
  std::map<std::int64_t, std::vector<std::size_t>> groups;  // by rounded number of tokens
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    check(chunks[i]);
    auto count = static_cast<std::int64_t>(chunks[i].tokens.size());
    groups[rounded_up(count, 4, limits_.chunk_tokens)].push_back(i);
  }
  std::vector<std::vector<float>> results(chunks.size());
  for (const auto& [time, numbers] : groups) run(chunks, numbers, time, results);
  return results;
}

void PagedRunner::run(const std::vector<Chunk>& chunks, const std::vector<std::size_t>& numbers,
                      std::int64_t time, std::vector<std::vector<float>>& results) {
  std::int64_t split =
      rules_.mesh() && rules_.mesh()->find_axis("data") ? rules_.mesh()->axis_size("data") : 1;
  std::int64_t rows = rounded_up(static_cast<std::int64_t>(numbers.size()), 2, limits_.sequences);
  rows = (rows + split - 1) / split * split;
  std::int64_t needed = 1;
  bool all = false;
  for (std::size_t i : numbers) {
    std::int64_t tokens = chunks[i].start + static_cast<std::int64_t>(chunks[i].tokens.size());
    needed = std::max(needed, (tokens + limits_.page_tokens - 1) / limits_.page_tokens);
    all = all || chunks[i].logits > 1;
  }
  std::int64_t most = (limits_.context + limits_.page_tokens - 1) / limits_.page_tokens;
  std::int64_t read = rounded_up(needed, 2, most);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows * time)),
      start(static_cast<std::size_t>(rows)), count(start.size()),
      pages(static_cast<std::size_t>(rows * read));
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const Chunk& chunk = chunks[numbers[row]];
    std::copy(chunk.tokens.begin(), chunk.tokens.end(),
              tokens.begin() + static_cast<std::int64_t>(row) * time);
    start[row] = static_cast<std::int32_t>(chunk.start);
    count[row] = static_cast<std::int32_t>(chunk.tokens.size());
    auto used = std::min(read, static_cast<std::int64_t>(chunk.pages.size()));
    std::copy_n(chunk.pages.begin(), used, pages.begin() + static_cast<std::int64_t>(row) * read);
  }
  auto sent = [&](std::vector<std::int32_t> values, Shape shape) {
    return rules_.mark(from_host(std::move(values), std::move(shape)), P("batch"));
  };
  PagedTokens given{sent(std::move(tokens), {rows, time}), sent(std::move(start), {rows}),
                    sent(std::move(count), {rows}), sent(std::move(pages), {rows, read})};
  auto [logits, cache] = step_(model_, given, cache_, Static{all && time > 1});
  cache_ = std::move(cache);
  if (std::all_of(numbers.begin(), numbers.end(),
                  [&](std::size_t i) { return chunks[i].logits == 0; }))
    return;
  HostArray host = logits.to_host();
  auto values = host.data<float>();
  std::int64_t kept = logits.dim(1), vocabulary = limits_.vocabulary;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const Chunk& chunk = chunks[numbers[row]];
    // With one row of logits, it is that of the last token.
    std::int64_t end = kept == 1 ? 1 : static_cast<std::int64_t>(chunk.tokens.size());
    auto first = static_cast<std::size_t>(
        ((static_cast<std::int64_t>(row) * kept) + end - chunk.logits) * vocabulary);
    auto part = values.subspan(first, static_cast<std::size_t>(chunk.logits * vocabulary));
    results[numbers[row]].assign(part.begin(), part.end());
  }
}

}  // namespace llm
