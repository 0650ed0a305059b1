#include "examples/llm/server/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "examples/llm/server/fake_runner.h"

namespace llm {
namespace {

using testing::HasSubstr;

RunnerLimits small_limits() {
  return {.vocabulary = 260,
          .context = 120,
          .page_tokens = 4,
          .pages = 60,
          .sequences = 6,
          .chunk_tokens = 16};
}

struct Result {
  std::string text;
  std::vector<TokenLogprob> tokens;
  Finish finish = Finish::kNone;
  std::string error;
  std::int64_t reused = 0;
  int events = 0;
};

/// A scheduler over a fake model, and the answers by id.
struct Bench {
  explicit Bench(SchedulerOptions options = {}, RunnerLimits limits = small_limits())
      : runner(limits), scheduler(runner, *tokenizer, options) {}

  std::uint64_t submit(GenerationRequest request) {
    auto result = std::make_shared<Result>();
    const auto id = scheduler.submit(std::move(request), [result](const GenerationEvent& event) {
      EXPECT_EQ(result->finish, Finish::kNone) << "an event after the last one";
      result->text += event.text;
      result->tokens.insert(result->tokens.end(), event.tokens.begin(), event.tokens.end());
      result->finish = event.finish;
      result->error = event.error;
      result->reused = event.reused_tokens;
      ++result->events;
    });
    results[id] = result;
    return id;
  }
  Result& run(GenerationRequest request) {
    const auto id = submit(std::move(request));
    finish();
    return *results.at(id);
  }
  void finish() {
    while (scheduler.step()) {
    }
    EXPECT_EQ(scheduler.counts().pages_used, 0);
    EXPECT_EQ(scheduler.counts().running, 0);
    EXPECT_EQ(scheduler.counts().waiting, 0);
  }

  std::unique_ptr<Tokenizer> tokenizer = fake_tokenizer();
  FakeRunner runner;
  Scheduler scheduler;
  std::map<std::uint64_t, std::shared_ptr<Result>> results;
};

GenerationRequest greedy(std::vector<std::int32_t> prompt, std::int64_t max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.logprobs = 0;
  return request;
}

/// Requests of which some begin alike, and whose pages do not fit into the cache together.
std::vector<GenerationRequest> random_requests(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<std::int32_t> shared(40);
  for (auto& token : shared) token = below(256);
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> prompt(shared.begin(), shared.begin() + below(40));
    for (int k = 1 + below(30); k > 0; --k) prompt.push_back(below(256));
    auto request = greedy(prompt, 1 + below(50));
    if (below(4) == 0) request.sampling.temperature = 0.7;
    if (below(4) == 0) request.sampling.repetition_penalty = 1.3;
    if (below(5) == 0) request.stops = {"e", "qu"};
    request.sampling.seed = static_cast<std::uint64_t>(i);
    request.end_tokens = {257};
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<std::int32_t> tokens_of(const Result& result) {
  std::vector<std::int32_t> tokens;
  for (const auto& token : result.tokens) tokens.push_back(token.token);
  return tokens;
}

/// The answers made one by one, without reuse and guesses.
std::vector<Result> one_by_one(const std::vector<GenerationRequest>& requests) {
  std::vector<Result> results;
  for (const auto& request : requests) {
    Bench bench({.reuse_prefixes = false});
    results.push_back(bench.run(request));
  }
  return results;
}

TEST(Scheduler, InterleavedAnswersEqualThoseMadeOneByOne) {
  const auto requests = random_requests(1, 64);
  const auto expected = one_by_one(requests);
  for (const std::int64_t speculative : {0, 6}) {
    for (const bool reuse : {false, true}) {
      Bench bench({.reuse_prefixes = reuse, .speculative = speculative});
      std::mt19937 random(2);
      std::vector<std::uint64_t> ids;
      std::map<std::uint64_t, bool> cancelled;
      for (const auto& request : requests) {
        ids.push_back(bench.submit(request));
        for (unsigned k = random() % 4; k > 0; --k) bench.scheduler.step();
        if (random() % 5 == 0) {
          const auto id = ids[random() % ids.size()];
          bench.scheduler.cancel(id);
          cancelled[id] = true;
        }
      }
      bench.finish();
      int whole = 0;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const Result& result = *bench.results.at(ids[i]);
        if (cancelled[ids[i]] && result.finish == Finish::kCancelled) {
          EXPECT_TRUE(expected[i].text.starts_with(result.text));
          continue;
        }
        ++whole;
        EXPECT_EQ(result.finish, expected[i].finish) << result.error;
        EXPECT_EQ(result.text, expected[i].text);
        EXPECT_EQ(tokens_of(result), tokens_of(expected[i]));
      }
      EXPECT_GT(whole, 40);
      const auto counts = bench.scheduler.counts();
      EXPECT_GT(counts.preemptions, 0) << "the cache is too large for this test";
      EXPECT_EQ(counts.reused_tokens > 0, reuse);
      EXPECT_EQ(counts.accepted_tokens > 0, speculative > 0);
      EXPECT_LE(counts.accepted_tokens, counts.drafted_tokens);
    }
  }
}

TEST(Scheduler, ReusesFullPagesOfThePromptAndOfAnswers) {
  Bench bench;
  std::vector<std::int32_t> prompt(10);
  for (std::int32_t i = 0; i < 10; ++i) prompt[static_cast<std::size_t>(i)] = i;
  const Result first = bench.run(greedy(prompt, 8));
  EXPECT_EQ(first.reused, 0);
  // Two full pages of four; the tokens after them are computed.
  EXPECT_EQ(bench.run(greedy(prompt, 8)).reused, 8);
  EXPECT_EQ(bench.run(greedy({prompt.begin(), prompt.begin() + 8}, 1)).reused, 4)
      << "the last token of the prompt is always computed";
  auto longer = prompt;
  for (const auto token : tokens_of(first)) longer.push_back(token);
  EXPECT_EQ(bench.run(greedy(longer, 1)).reused, 16) << "a chat that goes on";
  auto other = prompt;
  other[5] = 99;
  EXPECT_EQ(bench.run(greedy(other, 1)).reused, 4);
  const auto before = bench.runner.tokens_run();
  bench.run(greedy(prompt, 1));
  EXPECT_EQ(bench.runner.tokens_run() - before, 2);
}

TEST(Scheduler, RunsALongPromptInChunksBesideAnswers) {
  Bench bench;
  bench.submit(greedy({1, 2, 3}, 30));
  bench.scheduler.step();
  bench.submit(greedy(std::vector<std::int32_t>(100, 7), 1));
  for (int i = 0; i < 7; ++i) {  // 100 tokens are 7 chunks of at most 16
    const auto before = bench.runner.tokens_run();
    bench.scheduler.step();
    EXPECT_EQ(bench.runner.tokens_run() - before, 1 + (i < 6 ? 16 : 4));
  }
  bench.finish();
}

TEST(Scheduler, EndsAtStopStringsAndTokens) {
  const auto whole = one_by_one({greedy({65, 66}, 30)})[0];
  const auto tokens = tokens_of(whole);
  auto request = greedy({65, 66}, 30);
  request.end_tokens = {tokens[4]};
  const auto at = std::find(tokens.begin(), tokens.end(), tokens[4]) - tokens.begin();
  Bench bench;
  const Result ended = bench.run(request);
  EXPECT_EQ(ended.finish, Finish::kStop);
  EXPECT_EQ(tokens_of(ended), std::vector(tokens.begin(), tokens.begin() + at));
  request.end_tokens.clear();
  request.stops = {whole.text.substr(3, 2)};
  const Result stopped = bench.run(request);
  EXPECT_EQ(stopped.finish, Finish::kStop);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(request.stops[0])));
}

TEST(Scheduler, RefusesWhatDoesNotFit) {
  Bench bench({.queue = 2});
  const auto message = [&](GenerationRequest request) -> std::string {
    try {
      bench.submit(std::move(request));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message(greedy({}, 1)), HasSubstr("the prompt is empty"));
  EXPECT_THAT(message(greedy({260}, 1)), HasSubstr("has the token 260"));
  EXPECT_THAT(message(greedy({1}, 0)), HasSubstr("max_tokens is 0"));
  EXPECT_THAT(message(greedy({1}, 120)), HasSubstr("together they may be 120"));
  EXPECT_EQ(message(greedy({1}, 119)), "accepted");
  EXPECT_EQ(message(greedy({1}, 1)), "accepted");
  EXPECT_THAT(message(greedy({1}, 1)), HasSubstr("2 requests are waiting"));
  bench.finish();
}

TEST(Scheduler, EndsAtTheDeadlineAndReportsErrorsOfTheModel) {
  Bench bench;
  auto late = greedy({1, 2}, 5);
  late.deadline = std::chrono::steady_clock::now();
  EXPECT_EQ(bench.run(late).finish, Finish::kTimeout);

  class Broken : public Runner {
   public:
    [[nodiscard]] const RunnerLimits& limits() const override { return limits_; }
    std::vector<std::vector<float>> step(const std::vector<Chunk>& chunks) override {
      if (++calls_ == 1) throw std::runtime_error("no device");
      return std::vector<std::vector<float>>(chunks.size(), std::vector<float>(260));
    }
    RunnerLimits limits_ = small_limits();
    int calls_ = 0;
  } broken;
  Scheduler scheduler(broken, *bench.tokenizer, {});
  std::vector<std::string> errors;
  for (int i = 0; i < 2; ++i) {
    scheduler.submit(greedy({1}, 1),
                     [&](const GenerationEvent& event) { errors.push_back(event.error); });
    while (scheduler.step()) {
    }
  }
  EXPECT_THAT(errors, testing::ElementsAre("no device", ""));
  EXPECT_EQ(scheduler.counts().pages_used, 0);
}

}  // namespace
}  // namespace llm
