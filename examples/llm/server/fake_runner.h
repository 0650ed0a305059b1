#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "examples/llm/runner.h"
#include "examples/llm/text/pre_tokenizer.h"
#include "examples/llm/text/tokenizer.h"

namespace llm {

/// A Runner for tests whose logits are a function of all tokens of the sequence, which it reads
/// from the pages: each slot of a page holds a hash of the tokens up to it. It throws if the cache
/// is misused: a slot that was not written for this sequence, or a page that two chunks write to.
///
/// The most likely token often depends on the last two tokens only, so that answers repeat
/// themselves.
class FakeRunner : public Runner {
 public:
  explicit FakeRunner(RunnerLimits limits, std::chrono::microseconds step_time = {})
      : limits_(limits),
        step_time_(step_time),
        slots_(static_cast<std::size_t>(limits.pages * limits.page_tokens)) {}

  [[nodiscard]] const RunnerLimits& limits() const override { return limits_; }
  [[nodiscard]] std::int64_t tokens_run() const { return tokens_run_; }

  std::vector<std::vector<float>> step(const std::vector<Chunk>& chunks) override {
    if (step_time_.count() > 0) std::this_thread::sleep_for(step_time_);
    check(chunks.size() <= static_cast<std::size_t>(limits_.sequences), "too many chunks");
    std::vector<int> writers(static_cast<std::size_t>(limits_.pages));
    for (const auto& chunk : chunks)
      for (auto page = chunk.start / limits_.page_tokens;
           page * limits_.page_tokens < chunk.start + size(chunk); ++page)
        check(++writers.at(
                  static_cast<std::size_t>(chunk.pages.at(static_cast<std::size_t>(page)))) == 1,
              "two chunks write to one page");
    std::vector<std::vector<float>> result;
    for (const auto& chunk : chunks) result.push_back(run(chunk));
    return result;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int64_t position = -1;
    std::int32_t token = 0;
  };

  static void check(bool condition, const std::string& what) {
    if (!condition) throw std::logic_error("[fake runner] " + what);
  }
  static std::int64_t size(const Chunk& chunk) {
    return static_cast<std::int64_t>(chunk.tokens.size());
  }
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
  }

  Slot& slot(const Chunk& chunk, std::int64_t position) {
    const std::int64_t page =
        chunk.pages.at(static_cast<std::size_t>(position / limits_.page_tokens));
    return slots_.at(
        static_cast<std::size_t>(page * limits_.page_tokens + position % limits_.page_tokens));
  }

  std::vector<float> run(const Chunk& chunk) {
    check(!chunk.tokens.empty() && size(chunk) <= limits_.chunk_tokens, "invalid size of a chunk");
    check(chunk.start + size(chunk) <= limits_.context, "the sequence is longer than the context");
    check(chunk.logits >= 0 && chunk.logits <= size(chunk), "invalid count of logits");
    std::uint64_t hash = 0;
    std::int32_t previous = 0;
    for (std::int64_t i = 0; i < chunk.start; ++i) {
      const Slot& read = slot(chunk, i);
      hash = mix(hash, static_cast<std::uint64_t>(read.token));
      check(read.position == i && read.hash == hash, "a slot holds another sequence");
      previous = read.token;
    }
    std::vector<float> logits;
    for (std::int64_t i = 0; i < size(chunk); ++i) {
      const std::int32_t token = chunk.tokens[static_cast<std::size_t>(i)];
      hash = mix(hash, static_cast<std::uint64_t>(token));
      slot(chunk, chunk.start + i) = {hash, chunk.start + i, token};
      if (i >= size(chunk) - chunk.logits) add_logits(hash, previous, token, logits);
      previous = token;
      ++tokens_run_;
    }
    return logits;
  }

  void add_logits(std::uint64_t hash, std::int32_t previous, std::int32_t token,
                  std::vector<float>& logits) const {
    const std::uint64_t likely = mix(mix(7, static_cast<std::uint64_t>(previous % 4)),
                                     static_cast<std::uint64_t>(token % 16)) %
                                 static_cast<std::uint64_t>(limits_.vocabulary);
    for (std::int64_t id = 0; id < limits_.vocabulary; ++id) {
      const auto noise = mix(mix(hash, static_cast<std::uint64_t>(id)), 1) >> 40;  // 24 bits
      logits.push_back(static_cast<float>(noise) * 0x1p-22f +
                       (static_cast<std::uint64_t>(id) == likely ? 2.5f : 0.0f));
    }
  }

  RunnerLimits limits_;
  std::chrono::microseconds step_time_;
  std::vector<Slot> slots_;
  std::int64_t tokens_run_ = 0;
};

/// A byte-level tokenizer whose tokens are the 256 bytes and <s>, </s>, <user>, <assistant>.
inline std::unique_ptr<Tokenizer> fake_tokenizer() {
  nlohmann::json vocab = nlohmann::json::object();
  const auto& characters = byte_characters();
  for (std::size_t byte = 0; byte < 256; ++byte) vocab[characters[byte]] = byte;
  nlohmann::json added = nlohmann::json::array();
  for (const char* name : {"<s>", "</s>", "<user>", "<assistant>"})
    added.push_back({{"id", 256 + added.size()},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return make_tokenizer(
      {{"added_tokens", added},
       {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
       {"decoder", {{"type", "ByteLevel"}}},
       {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}});
}

}  // namespace llm
