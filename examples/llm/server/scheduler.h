#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/llm/runner.h"
#include "examples/llm/server/page_cache.h"
#include "examples/llm/server/sampling.h"
#include "examples/llm/text/tokenizer.h"

namespace llm {

/// One answer that is wanted.
struct GenerationRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token
  std::int64_t max_tokens = 16;      ///< of the answer; prompt and answer fit into the context
  SamplingOptions sampling;
  std::vector<std::string> stops;  ///< the answer ends before these texts
  std::set<std::int32_t>
      end_tokens;              ///< the answer ends with these tokens, which it does not contain
  std::int64_t logprobs = -1;  ///< with the log-probabilities of so many tokens; -1: none
  /// The answer ends with kTimeout at this time.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

enum class Finish { kNone, kStop, kLength, kTimeout, kCancelled, kError };

/// What is new in an answer.
struct GenerationEvent {
  std::string text;
  std::vector<TokenLogprob> tokens;  ///< those that were chosen, if log-probabilities are wanted
  Finish finish = Finish::kNone;     ///< other than kNone in the last event only
  std::string error;                 ///< of kError
  std::int64_t answer_tokens = 0;    ///< all so far
  std::int64_t reused_tokens = 0;    ///< of the prompt, from answers before
};

struct SchedulerOptions {
  std::int64_t queue = 256;    ///< the most requests that wait
  bool reuse_prefixes = true;  ///< keys and values of equal beginnings are computed once
  std::int64_t speculative =
      0;  ///< the most tokens that are guessed ahead of greedy answers; 0: none
};

/// Counts since the start, and current sizes.
struct SchedulerCounts {
  std::int64_t requests = 0, prompt_tokens = 0, reused_tokens = 0, answer_tokens = 0;
  std::int64_t drafted_tokens = 0, accepted_tokens = 0, preemptions = 0, steps = 0;
  std::int64_t running = 0, waiting = 0, pages_used = 0, pages_kept = 0;
};

/// Too many requests wait.
class QueueFull : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Continuous batching: each step of the model has the next tokens of all running answers, and the
/// next part of prompts, at most RunnerLimits::chunk_tokens of them. Requests start in the order in
/// which they came, when there are pages for their prompt. If an answer needs a page and all are in
/// use, the answer that started last gives its pages back and is computed again later; its tokens
/// stay.
///
/// submit(), cancel(), counts() and stop() may be called by any thread. One thread calls run(), or
/// step() repeatedly; it also calls the functions that take events.
class Scheduler {
 public:
  using Sink = std::function<void(const GenerationEvent&)>;

  /// @pre runner and tokenizer outlive it
  Scheduler(Runner& runner, const Tokenizer& tokenizer, SchedulerOptions options);
  ~Scheduler();

  /// Takes a request. The sink gets its events; the last one has a `finish`.
  /// @error std::invalid_argument if the request does not fit into the model or its cache;
  /// QueueFull
  std::uint64_t submit(GenerationRequest request, Sink sink);
  /// Ends a request at the next step. Does nothing if it has ended.
  void cancel(std::uint64_t id);

  /// One step of the model. @return whether there was something to do
  bool step();
  /// Steps until stop() is called; waits while there is nothing to do.
  void run();
  /// Makes run() return. Requests that have not ended get kCancelled.
  void stop();

  [[nodiscard]] SchedulerCounts counts() const;
  [[nodiscard]] const RunnerLimits& limits() const { return runner_->limits(); }

 private:
  struct Answer;
  using AnswerPointer = std::unique_ptr<Answer>;
  /// A chunk of a step, and the answer it belongs to.
  struct Work {
    Answer* answer = nullptr;
    std::vector<std::int32_t> draft;
  };

  void check(const GenerationRequest& request) const;
  void take_inbox();
  void expire();
  void admit();
  bool start(Answer& answer);
  void add_chunks(std::vector<Work>& work, std::vector<Chunk>& chunks);
  bool reserve(Answer& answer, std::int64_t tokens);
  bool make_room(Answer& answer, std::int64_t tokens);
  void preempt();
  [[nodiscard]] std::vector<std::int32_t> draft(const Answer& answer) const;
  void take_logits(Work& work, const Chunk& chunk, const std::vector<float>& logits);
  bool take_token(Answer& answer, std::span<const float> logits, GenerationEvent& event);
  void keep_pages(Answer& answer);
  void release_pages(Answer& answer);
  void end(Answer& answer, Finish finish, const std::string& error);
  void remove_ended();
  void publish();

  Runner* runner_;
  const Tokenizer* tokenizer_;
  SchedulerOptions options_;
  PageCache cache_;
  std::deque<AnswerPointer> waiting_;
  std::vector<AnswerPointer> running_;
  SchedulerCounts totals_;  // of the thread that steps

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<AnswerPointer> inbox_;
  std::set<std::uint64_t> cancelled_;
  std::uint64_t next_id_ = 1;
  std::int64_t queued_ = 0;  ///< in inbox_ and waiting_
  bool stopped_ = false;
  SchedulerCounts published_;
};

}  // namespace llm
