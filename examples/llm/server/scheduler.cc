#include "examples/llm/server/scheduler.h"

#include <algorithm>
#include <utility>

#include "examples/llm/server/answer_text.h"
#include "examples/llm/server/prompt_lookup.h"

namespace llm {

struct Scheduler::Answer {
  Answer(std::uint64_t number, GenerationRequest wanted, Sink events, const Tokenizer& tokenizer)
      : id(number),
        request(std::move(wanted)),
        sink(std::move(events)),
        tokens(request.prompt),
        sampler(request.sampling, request.prompt),
        text(tokenizer, request.stops) {}

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens.size()); }
  [[nodiscard]] std::int64_t answered() const {
    return size() - static_cast<std::int64_t>(request.prompt.size());
  }

  std::uint64_t id;
  GenerationRequest request;
  Sink sink;
  std::vector<std::int32_t> tokens;  ///< of the prompt and the answer
  Sampler sampler;
  AnswerText text;
  std::vector<std::int32_t> pages;
  std::int64_t cached = 0;               ///< tokens whose keys and values are in the pages
  std::int64_t kept = 0;                 ///< pages that are kept
  std::int64_t node = PageCache::kRoot;  ///< of the last of these
  std::int64_t reused = 0;
  std::int64_t guess = 1;  ///< how many tokens are guessed next
  bool ended = false;
};

Scheduler::Scheduler(Runner& runner, const Tokenizer& tokenizer, SchedulerOptions options)
    : runner_(&runner),
      tokenizer_(&tokenizer),
      options_(options),
      cache_(runner.limits().pages, runner.limits().page_tokens) {}

Scheduler::~Scheduler() = default;

void Scheduler::check(const GenerationRequest& request) const {
  const RunnerLimits& limits = runner_->limits();
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt < 1) throw std::invalid_argument("the prompt is empty");
  if (request.max_tokens < 1)
    throw std::invalid_argument("max_tokens is " + std::to_string(request.max_tokens) +
                                "; it must be at least 1");
  for (const auto token : request.prompt)
    if (token < 0 || token >= limits.vocabulary)
      throw std::invalid_argument("the prompt has the token " + std::to_string(token) +
                                  "; the model has tokens 0 to " +
                                  std::to_string(limits.vocabulary - 1));
  const std::int64_t most = std::min(limits.context, limits.pages * limits.page_tokens);
  if (prompt > most || request.max_tokens > most - prompt)
    throw std::invalid_argument("the prompt has " + std::to_string(prompt) +
                                " tokens and max_tokens is " + std::to_string(request.max_tokens) +
                                "; together they may be " + std::to_string(most));
}

std::uint64_t Scheduler::submit(GenerationRequest request, Sink sink) {
  check(request);
  const std::lock_guard lock(mutex_);
  if (stopped_) throw QueueFull("the server is shutting down");
  if (queued_ >= options_.queue)
    throw QueueFull("the queue is full: " + std::to_string(queued_) + " requests are waiting");
  ++queued_;
  const std::uint64_t id = next_id_++;
  inbox_.push_back(std::make_unique<Answer>(id, std::move(request), std::move(sink), *tokenizer_));
  wake_.notify_one();
  return id;
}

void Scheduler::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(id);
  wake_.notify_one();
}

void Scheduler::take_inbox() {
  std::set<std::uint64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    for (auto& answer : inbox_) {
      ++totals_.requests;
      totals_.prompt_tokens += static_cast<std::int64_t>(answer->request.prompt.size());
      waiting_.push_back(std::move(answer));
    }
    inbox_.clear();
    cancelled.swap(cancelled_);
  }
  if (cancelled.empty()) return;
  const auto look = [&](auto& answers) {
    for (auto& answer : answers)
      if (cancelled.contains(answer->id)) end(*answer, Finish::kCancelled, {});
  };
  look(waiting_);
  look(running_);
}

void Scheduler::expire() {
  const auto now = std::chrono::steady_clock::now();
  const auto look = [&](auto& answers) {
    for (auto& answer : answers)
      if (!answer->ended && answer->request.deadline <= now) end(*answer, Finish::kTimeout, {});
  };
  look(waiting_);
  look(running_);
}

bool Scheduler::reserve(Answer& answer, std::int64_t tokens) {
  const std::int64_t page_tokens = runner_->limits().page_tokens;
  const std::int64_t wanted = (tokens + page_tokens - 1) / page_tokens;
  const std::int64_t missing = wanted - static_cast<std::int64_t>(answer.pages.size());
  if (missing > cache_.available()) return false;
  for (std::int64_t i = 0; i < missing; ++i) answer.pages.push_back(*cache_.allocate());
  return true;
}

bool Scheduler::start(Answer& answer) {
  if (options_.reuse_prefixes) {
    // The last token is computed in any case, because its logits are needed.
    auto prefix = cache_.use_prefix(answer.tokens, answer.size() - 1);
    answer.kept = static_cast<std::int64_t>(prefix.pages.size());
    answer.cached = answer.kept * runner_->limits().page_tokens;
    answer.node = prefix.node;
    answer.pages = std::move(prefix.pages);
  }
  if (!reserve(answer, answer.size())) {
    release_pages(answer);
    return false;
  }
  if (answer.answered() == 0) answer.reused = answer.cached;
  totals_.reused_tokens += answer.cached;
  return true;
}

void Scheduler::admit() {
  while (!waiting_.empty() &&
         static_cast<std::int64_t>(running_.size()) < runner_->limits().sequences) {
    if (!start(*waiting_.front())) break;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Scheduler::preempt() {
  ++totals_.preemptions;
  release_pages(*running_.back());
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
}

bool Scheduler::make_room(Answer& answer, std::int64_t tokens) {
  while (!reserve(answer, tokens)) {
    const bool itself = running_.back().get() == &answer;
    preempt();
    if (itself) return false;
  }
  return true;
}

std::vector<std::int32_t> Scheduler::draft(const Answer& answer) const {
  if (options_.speculative <= 0 || !answer.sampler.options().greedy()) return {};
  const std::int64_t most =
      std::min({options_.speculative, answer.guess, runner_->limits().chunk_tokens - 1,
                answer.request.max_tokens - answer.answered() - 1});
  return prompt_lookup(answer.tokens, most);
}

void Scheduler::add_chunks(std::vector<Work>& work, std::vector<Chunk>& chunks) {
  std::int64_t budget = runner_->limits().chunk_tokens;  // for prompts
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Answer& answer = *running_[i];
    const std::int64_t pending = answer.size() - answer.cached;
    Work item{&answer, {}};
    if (pending == 1) {
      item.draft = draft(answer);
      if (!item.draft.empty() &&
          !reserve(answer, answer.size() + static_cast<std::int64_t>(item.draft.size())))
        item.draft.clear();
      if (!make_room(answer, answer.size())) break;  // it was the last one
    }
    const std::int64_t count = pending == 1 ? 1 : std::min(pending, budget);
    if (count == 0) continue;
    if (pending > 1) budget -= count;
    const auto begin = answer.tokens.begin() + answer.cached;
    Chunk chunk{{begin, begin + count}, answer.cached, {}, count == pending ? 1 : 0};
    chunk.tokens.insert(chunk.tokens.end(), item.draft.begin(), item.draft.end());
    chunk.logits += static_cast<std::int64_t>(item.draft.size());
    chunk.pages = answer.pages;
    totals_.drafted_tokens += static_cast<std::int64_t>(item.draft.size());
    chunks.push_back(std::move(chunk));
    work.push_back(std::move(item));
  }
}

void Scheduler::keep_pages(Answer& answer) {
  const std::int64_t page_tokens = runner_->limits().page_tokens;
  for (; options_.reuse_prefixes && (answer.kept + 1) * page_tokens <= answer.cached; ++answer.kept)
    answer.node = cache_.keep(answer.pages[static_cast<std::size_t>(answer.kept)], answer.node,
                              std::span<const std::int32_t>(answer.tokens)
                                  .subspan(static_cast<std::size_t>(answer.kept * page_tokens),
                                           static_cast<std::size_t>(page_tokens)));
}

void Scheduler::release_pages(Answer& answer) {
  // From the last one, so that the beginning, which more requests have, stays longest.
  for (auto page = answer.pages.rbegin(); page != answer.pages.rend(); ++page)
    cache_.release(*page);
  answer.pages.clear();
  answer.cached = answer.kept = 0;
  answer.node = PageCache::kRoot;
}

void Scheduler::end(Answer& answer, Finish finish, const std::string& error) {
  if (answer.ended) return;
  answer.ended = true;
  GenerationEvent event;
  event.finish = finish;
  event.error = error;
  event.answer_tokens = answer.answered();
  event.reused_tokens = answer.reused;
  answer.sink(event);
}

bool Scheduler::take_token(Answer& answer, std::span<const float> logits, GenerationEvent& event) {
  const std::int32_t token = answer.sampler.choose(logits);
  if (answer.request.end_tokens.contains(token)) {
    event.text += answer.text.finish();
    event.finish = Finish::kStop;
    return false;
  }
  answer.tokens.push_back(token);
  answer.sampler.accept(token);
  ++totals_.answer_tokens;
  if (answer.request.logprobs >= 0)
    event.tokens.push_back(token_logprob(logits, token, answer.request.logprobs));
  event.text += answer.text.add(token);
  if (answer.answered() >= answer.request.max_tokens) {
    if (!answer.text.stopped()) event.text += answer.text.finish();
    event.finish = Finish::kLength;
  }
  if (answer.text.stopped()) event.finish = Finish::kStop;
  return event.finish == Finish::kNone;
}

void Scheduler::take_logits(Work& work, const Chunk& chunk, const std::vector<float>& logits) {
  Answer& answer = *work.answer;
  const auto vocabulary = static_cast<std::size_t>(runner_->limits().vocabulary);
  if (logits.size() != static_cast<std::size_t>(chunk.logits) * vocabulary)
    throw std::logic_error("[scheduler] the model returned " + std::to_string(logits.size()) +
                           " logits for " + std::to_string(chunk.logits) + " tokens");
  answer.cached += static_cast<std::int64_t>(chunk.tokens.size() - work.draft.size());
  GenerationEvent event;
  const std::size_t guessed = work.draft.size();
  std::size_t right = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(chunk.logits); ++row) {
    if (!take_token(answer, std::span(logits).subspan(row * vocabulary, vocabulary), event)) break;
    if (row >= guessed || answer.tokens.back() != work.draft[row]) break;
    ++answer.cached;
    ++right;
  }
  totals_.accepted_tokens += static_cast<std::int64_t>(right);
  if (guessed > 0) answer.guess = right == guessed ? answer.guess * 2 : 1 + answer.guess / 2;
  answer.guess =
      std::clamp<std::int64_t>(answer.guess, 1, std::max<std::int64_t>(1, options_.speculative));
  keep_pages(answer);
  if (chunk.logits == 0) return;
  event.answer_tokens = answer.answered();
  event.reused_tokens = answer.reused;
  answer.ended = event.finish != Finish::kNone;
  if (answer.ended || !event.text.empty() || !event.tokens.empty()) answer.sink(event);
}

void Scheduler::remove_ended() {
  std::erase_if(running_, [&](const AnswerPointer& answer) {
    if (answer->ended) release_pages(*answer);
    return answer->ended;
  });
  std::erase_if(waiting_, [](const AnswerPointer& answer) { return answer->ended; });
}

void Scheduler::publish() {
  totals_.running = static_cast<std::int64_t>(running_.size());
  totals_.pages_used = cache_.used();
  totals_.pages_kept = cache_.kept();
  const std::lock_guard lock(mutex_);
  queued_ = static_cast<std::int64_t>(inbox_.size() + waiting_.size());
  totals_.waiting = queued_;
  published_ = totals_;
}

bool Scheduler::step() {
  take_inbox();
  expire();
  remove_ended();
  admit();
  std::vector<Work> work;
  std::vector<Chunk> chunks;
  add_chunks(work, chunks);
  publish();
  if (chunks.empty()) return !running_.empty() || !waiting_.empty();
  ++totals_.steps;
  std::vector<std::vector<float>> logits;
  try {
    logits = runner_->step(chunks);
    if (logits.size() != chunks.size())
      throw std::logic_error("[scheduler] the model returned " + std::to_string(logits.size()) +
                             " results for " + std::to_string(chunks.size()) + " chunks");
  } catch (const std::exception& error) {
    for (auto& item : work) end(*item.answer, Finish::kError, error.what());
  }
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i].answer->ended) continue;
    try {
      take_logits(work[i], chunks[i], logits[i]);
    } catch (const std::exception& error) {
      end(*work[i].answer, Finish::kError, error.what());
    }
  }
  remove_ended();
  publish();
  return true;
}

void Scheduler::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stopped_) break;
      if (inbox_.empty() && cancelled_.empty() && running_.empty() && waiting_.empty())
        wake_.wait(lock);
      if (stopped_) break;
    }
    step();
  }
  take_inbox();
  for (auto& answer : running_) end(*answer, Finish::kCancelled, {});
  for (auto& answer : waiting_) end(*answer, Finish::kCancelled, {});
  remove_ended();
  publish();
}

void Scheduler::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  SchedulerCounts counts = published_;
  counts.waiting = queued_;
  return counts;
}

}  // namespace llm
