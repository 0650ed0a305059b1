#include "meshard/plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/trigonometric.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

TEST(PlanVerdict, WhatIsBetter) {
  PlanVerdict fast{.seconds = 1}, slow{.seconds = 2};
  PlanVerdict quiet{.seconds = 1, .collective_bytes = 0}, loud{.seconds = 1, .collective_bytes = 9};
  PlanVerdict big{.outcome = PlanOutcome::kTooBig, .memory = 10};
  PlanVerdict bigger{.outcome = PlanOutcome::kTooBig, .memory = 20};
  PlanVerdict unknown{.outcome = PlanOutcome::kTooBig};
  PlanVerdict refused{.outcome = PlanOutcome::kRefused};
  const PlanVerdict* order[] = {&quiet, &loud, &slow, &big, &bigger, &unknown, &refused};
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 7; ++j)
      EXPECT_EQ(better(*order[i], *order[j]), i < j) << i << " " << j;
  EXPECT_FALSE(better(fast, fast));
}

TEST(PlanVerdict, OfAReport) {
  ProgramReport::Parts parts{.name = "f"};
  parts.memory = MemoryUse{.arguments = 90, .capacity = 100};
  parts.collectives = {{.instruction = "c", .bytes_in = 8, .executions = 3}};
  EXPECT_EQ(verdict_of(ProgramReport(parts), 0.05),
            (PlanVerdict{.memory = 90, .capacity = 100, .collective_bytes = 24}));
  EXPECT_EQ(verdict_of(ProgramReport(parts), 0.2).outcome, PlanOutcome::kTooBig);
}

TEST(PlanVerdict, TheTimeIsThatOfTheScheduleIfThereIsOne) {
  ProgramReport::Parts parts{.name = "f"};
  EXPECT_EQ(verdict_of(ProgramReport(parts), 0).basis, TimeBasis::kUnknown);
  EXPECT_EQ(seconds_of(ProgramReport(parts)), 0);
  parts.roofline.emplace().compute_seconds = 3;
  parts.roofline->memory_seconds = 1;
  PlanVerdict bound = verdict_of(ProgramReport(parts), 0);
  EXPECT_EQ(bound.basis, TimeBasis::kRoofline);
  EXPECT_EQ(bound.seconds, 4);
  parts.schedule = Schedule{
      .seconds = 3.5, .busy_seconds = 3, .links = {.hidden_seconds = 2, .exposed_seconds = 0.5}};
  PlanVerdict scheduled = verdict_of(ProgramReport(parts), 0);
  EXPECT_EQ(scheduled.basis, TimeBasis::kSchedule);
  EXPECT_EQ(scheduled.seconds, 3.5);
  EXPECT_EQ(scheduled.exposed_seconds, 0.5);
  EXPECT_EQ(scheduled.hidden_seconds, 2);
}

// A problem without a compiler: the report's memory is what the specs place on one device.
PlanProblem paper_problem() {
  PlanProblem problem;
  problem.identity = "paper";
  problem.devices = 8;
  problem.axes = {"x", "y"};
  problem.values = {{"w", {DType::f32, Shape{8, 12}}, P(unconstrained, unconstrained)},
                    {"b", {DType::f32, Shape{12}}, P(unconstrained)}};
  problem.compile = [problem](const PlanCandidate& candidate) -> Result<ProgramReport> {
    double bytes = 0;
    for (std::size_t i = 0; i < candidate.specs.size(); ++i)
      bytes += shard_bytes(candidate.specs[i], problem.values[i].type, candidate.axes);
    ProgramReport::Parts parts{.name = "paper"};
    parts.memory = MemoryUse{.arguments = static_cast<std::int64_t>(bytes)};
    return ProgramReport(std::move(parts));
  };
  return problem;
}

TEST(PlanCandidates, ValidAndOnce) {
  PlanProblem problem = paper_problem();
  bool complete = false;
  std::vector<PlannedCandidate> all = plan_candidates(problem, {}, complete);
  EXPECT_TRUE(complete);
  std::set<std::string> seen;
  for (const PlannedCandidate& one : all) {
    EXPECT_TRUE(seen.insert(one.candidate.to_string()).second) << one.candidate.to_string();
    EXPECT_EQ(Mesh(one.candidate.axes).size(), 8);
    ASSERT_EQ(one.candidate.specs.size(), 2u);
    EXPECT_TRUE(divides(one.candidate.specs[0], Shape{8, 12}, one.candidate.axes));
    EXPECT_TRUE(divides(one.candidate.specs[1], Shape{12}, one.candidate.axes));
  }
  // By hand. (1, 8): w is split by none or along 0; b by none. (2, 4): x and y each split none, 0
  // or 1 of w, but not both 1, because 12 is not divisible by 8: 8 specs; b is split by none, x or
  // y: 3. (4, 2) is like (2, 4), and (8, 1) like (1, 8).
  EXPECT_EQ(all.size(), 2u + 8 * 3 + 8 * 3 + 2);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_LE(all[i - 1].estimate.least_memory, all[i].estimate.least_memory);
}

TEST(PlanCandidates, ABeamWhereThereAreTooMany) {
  PlanProblem problem = paper_problem();
  bool complete = true;
  std::vector<PlannedCandidate> some = plan_candidates(problem, {.most_candidates = 16}, complete);
  EXPECT_FALSE(complete);
  EXPECT_LE(some.size(), 16u);
  // w over all 8 devices, and b over 4, because 12 is not divisible by 8: (384 / 8 + 48 / 4) bytes.
  EXPECT_EQ(some.front().estimate.least_memory, 48 + 12);
}

TEST(PlanCandidates, PinnedAndUnsuitableMeshes) {
  PlanProblem problem = paper_problem();
  bool complete = false;
  problem.pinned = {{"y", 2}};
  EXPECT_EQ(plan_candidates(problem, {}, complete).size(), 24u);
  problem.suits = [](const std::vector<MeshAxis>& axes) { return axes[0].size == 1; };
  EXPECT_TRUE(plan_candidates(problem, {}, complete).empty());
  problem.pinned = {{"y", 3}};
  EXPECT_TRUE(throws_error([&] { plan_candidates(problem, {}, complete); },
                           ErrorCode::kInvalidArgument, {"does not divide 8"}));
  problem.pinned = {};
  problem.axes = {"x", "x"};
  EXPECT_TRUE(throws_error([&] { plan_candidates(problem, {}, complete); },
                           ErrorCode::kInvalidArgument, {"listed twice"}));
}

TEST(Search, RulesOutWhatCannotFitAndCompilesTheRest) {
  PlanProblem problem = paper_problem();
  problem.capacity = 100;
  PlanResult found = search(problem);
  EXPECT_GT(found.ruled_out, 0u);
  EXPECT_EQ(found.compiled + found.ruled_out, found.candidates);
  EXPECT_TRUE(found.exhaustive);
  EXPECT_EQ(found.ranking.front().verdict.memory, 48 + 12);
  for (std::size_t i = 1; i < found.ranking.size(); ++i)
    EXPECT_FALSE(better(found.ranking[i].verdict, found.ranking[i - 1].verdict));
  problem.capacity = 10;
  PlanResult nothing = search(problem);
  EXPECT_EQ(nothing.compiled, 0u);
  EXPECT_FALSE(nothing.anything_fits());
  EXPECT_THAT(nothing.to_string(), HasSubstr("nothing fits"));
}

TEST(Search, OneOfEqualProgramsIsCompiled) {
  PlanProblem problem = paper_problem();
  // The program depends on the memory of one device only.
  problem.program_key = [&](const PlanCandidate& candidate) {
    return std::to_string(problem.compile(candidate).value().memory()->total());
  };
  PlanResult found = search(problem);
  std::set<std::int64_t> sizes;
  for (const PlannedCandidate& one : found.ranking)
    EXPECT_TRUE(sizes.insert(one.verdict.memory).second) << one.verdict.memory;
  EXPECT_EQ(found.candidates, 52u);
  EXPECT_GT(found.repeated, 0u);
  EXPECT_EQ(found.compiled + found.repeated, found.candidates);
  EXPECT_EQ(found.ranking.front().verdict.memory, 48 + 12);
  EXPECT_THAT(found.to_string(), HasSubstr(" equal to others but for the names of axes"));
}

TEST(Search, LimitsAndProgress) {
  PlanProblem problem = paper_problem();
  std::vector<std::size_t> done;
  PlanOptions options{.most_compiled = 3};
  options.progress = [&](const PlanProgress& progress) {
    EXPECT_EQ(progress.of, 52u);
    EXPECT_EQ(progress.best != nullptr, progress.done > 0);
    done.push_back(progress.done);
  };
  PlanResult found = search(problem, options);
  EXPECT_THAT(done, testing::ElementsAre(0u, 1u, 2u, 3u));
  EXPECT_EQ(found.compiled, 3u);
  EXPECT_FALSE(found.exhaustive);
  EXPECT_THAT(found.to_string(), HasSubstr("stopped by the limit of 3 compiles"));
  options.time_limit = std::chrono::seconds(0);
  EXPECT_EQ(search(problem, options).ended_by, "the time limit");
}

TEST(Search, CandidatesThatDoNotCompileAreResults) {
  PlanProblem problem = paper_problem();
  problem.pinned = {{"x", 1}};
  problem.compile = [](const PlanCandidate& candidate) -> Result<ProgramReport> {
    if (candidate.specs[0] == P(none, none)) throw Error(ErrorCode::kInternal, "no such layout");
    return Error(ErrorCode::kResourceExhausted, "needs 3 GiB");
  };
  PlanResult found = search(problem);
  ASSERT_EQ(found.ranking.size(), 2u);
  EXPECT_EQ(found.ranking[0].verdict.outcome, PlanOutcome::kTooBig);
  EXPECT_EQ(found.ranking[1].verdict.problem, "no such layout");
  EXPECT_FALSE(found.anything_fits());
}

// A problem with a clock on paper: each device multiplies what it has, and "y" is a slow axis.
PlanProblem timed_problem() {
  PlanProblem problem = paper_problem();
  auto seconds = [](const PlanCandidate& candidate) {
    double time = 1;
    for (const DimensionSpec& dimension : candidate.specs[0].dimensions())
      for (const AxisRef& axis : dimension.axes()) {
        std::int64_t size = candidate.axes[axis.name == "x" ? 0 : 1].size;
        time = time / static_cast<double>(size) + (axis.name == "y" ? 2 : 0);
      }
    return time;
  };
  problem.estimate = [seconds](const PlanCandidate& candidate) {
    PlanEstimate estimate;
    // Wrong by a factor of 1 to 2, in the same way for similar candidates.
    double error = candidate.specs[1] == P(none) ? 2 : 1;
    estimate.seconds = seconds(candidate) / error;
    return estimate;
  };
  problem.compile = [seconds](const PlanCandidate& candidate) -> Result<ProgramReport> {
    ProgramReport::Parts parts{.name = "timed"};
    parts.memory = MemoryUse{.arguments = candidate.specs[1] == P(none) ? 10 : 20};
    parts.roofline.emplace().compute_seconds = seconds(candidate);
    return ProgramReport(std::move(parts));
  };
  problem.given =
      PlanCandidate{{{.name = "x", .size = 4}, {.name = "y", .size = 2}}, {P("y", "x"), P(none)}};
  return problem;
}

TEST(Search, TheGivenProgramIsCompiledFirstAndNeverRankedBelowAWorseOne) {
  PlanProblem problem = timed_problem();
  problem.given_is_candidate = true;
  PlanResult one = search(problem, {.most_compiled = 1});
  ASSERT_EQ(one.ranking.size(), 1u);
  EXPECT_TRUE(one.ranking[0].as_given);
  EXPECT_EQ(one.ranking[0].candidate, *problem.given);
  EXPECT_TRUE(one.given_is_best());
  EXPECT_THAT(one.to_string(), HasSubstr("as given: x=4,y=2; w: P(\"y\", \"x\"); b: P(none)"));
  EXPECT_THAT(one.to_string(), HasSubstr("nothing better than the given program was found"));

  PlanResult all = search(problem);
  EXPECT_EQ(all.candidates, 52u);  // the given one is one of them
  EXPECT_EQ(all.compiled, 52u);
  // x=8: w over all devices by the fast axis takes an eighth.
  EXPECT_DOUBLE_EQ(all.ranking[0].verdict.seconds, 1.0 / 8);
  EXPECT_FALSE(all.given_is_best());
  ASSERT_NE(all.given(), nullptr);
  EXPECT_GT(all.given()->verdict.seconds, all.ranking[0].verdict.seconds);
}

TEST(Search, AGivenProgramThatIsNoneOfTheCandidates) {
  PlanProblem problem = timed_problem();
  // It is the fastest, although its axes cannot be reached by the search.
  problem.given =
      PlanCandidate{{{.name = "x", .size = 4}, {.name = "y", .size = 1}}, {P("x", none), P(none)}};
  problem.compile_given = []() -> Result<ProgramReport> {
    ProgramReport::Parts parts{.name = "given"};
    parts.memory = MemoryUse{.arguments = 5};
    parts.roofline.emplace().compute_seconds = 0.01;
    return ProgramReport(std::move(parts));
  };
  PlanResult found = search(problem);
  EXPECT_EQ(found.candidates, 52u + 1);
  EXPECT_TRUE(found.given_is_best());
  EXPECT_EQ(found.ranking[0].verdict.seconds, 0.01);
  // Also if it does not compile, it is shown.
  problem.compile_given = []() -> Result<ProgramReport> {
    return Error(ErrorCode::kInvalidArgument, "the program has 4 devices");
  };
  found = search(problem);
  ASSERT_NE(found.given(), nullptr);
  EXPECT_EQ(found.given()->verdict.outcome, PlanOutcome::kRefused);
  EXPECT_THAT(found.to_string(1), HasSubstr("refused: the program has 4 devices"));
  EXPECT_FALSE(found.given_is_best());
}

TEST(Search, AnEqualCandidateThatNamesItsShardingsPrecedesAnOpenGivenOne) {
  PlanProblem problem = timed_problem();
  problem.given = PlanCandidate{{{.name = "x", .size = 8}, {.name = "y", .size = 1}},
                                {P(unconstrained, none), P(none)}};
  problem.compile_given = [compile = problem.compile] {
    return compile({{{.name = "x", .size = 8}, {.name = "y", .size = 1}}, {P("x", none), P(none)}});
  };
  PlanResult found = search(problem);
  EXPECT_EQ(found.ranking[0].candidate.specs[0], P("x", none));
  EXPECT_TRUE(found.ranking[1].as_given);
  EXPECT_TRUE(found.given_is_best());
}

// Compute of 4 s, and a collective of 3 s that runs behind it or not.
ProgramReport with_a_collective(bool is_hidden) {
  ProgramReport::Parts parts{.name = is_hidden ? "hidden" : "exposed"};
  parts.memory = MemoryUse{.arguments = 10};
  parts.roofline.emplace().compute_seconds = 4;
  parts.roofline->links = {{.axes = "x", .link = "ICI", .bytes = 100, .seconds = 3}};
  parts.schedule = Schedule{.seconds = is_hidden ? 4.0 : 7.0, .busy_seconds = 4};
  (is_hidden ? parts.schedule->links.hidden_seconds : parts.schedule->links.exposed_seconds) = 3;
  return ProgramReport(std::move(parts));
}

TEST(Search, AHiddenCollectiveRanksBeforeAnExposedOne) {
  PlanProblem problem = paper_problem();
  problem.pinned = {{"x", 1}};
  for (bool first_hides : {true, false}) {
    problem.compile = [&](const PlanCandidate& candidate) -> Result<ProgramReport> {
      return with_a_collective((candidate.specs[0] == P(none, none)) == first_hides);
    };
    PlanResult found = search(problem);
    ASSERT_EQ(found.ranking.size(), 2u);
    EXPECT_EQ(found.ranking[0].report->name(), "hidden");
    EXPECT_EQ(found.ranking[0].candidate.specs[0] == P(none, none), first_hides);
    // The roofline says the same of both.
    EXPECT_EQ(found.ranking[0].report->parts().roofline, found.ranking[1].report->parts().roofline);
    std::string text = found.to_string();
    std::size_t hidden = text.find("4 s by the schedule (0 ns exposed communication, 3 s hidden)"),
                exposed = text.find("7 s by the schedule (3 s exposed communication, 0 ns hidden)");
    EXPECT_LT(hidden, exposed) << text;
    EXPECT_NE(exposed, std::string::npos) << text;
  }
}

TEST(Search, FindsTheBestWithFewCompiles) {
  PlanProblem problem = timed_problem();
  problem.given_is_candidate = true;
  PlanResult found = search(problem, {.most_compiled = 6});
  EXPECT_DOUBLE_EQ(found.ranking[0].verdict.seconds, 1.0 / 8) << found.to_string(10);
}

TEST(Search, WhatItTakesToBringResultsBackCounts) {
  PlanProblem problem = timed_problem();
  problem.given_is_candidate = true;
  problem.return_cost = [](const ProgramReport&) { return ReturnCost{.seconds = 3, .bytes = 7}; };
  PlanVerdict verdict = search(problem, {.most_compiled = 1}).ranking[0].verdict;
  EXPECT_EQ(verdict.return_seconds, 3);
  EXPECT_EQ(verdict.collective_bytes, 7);
  EXPECT_GT(verdict.seconds, 3);
}

TEST(Search, SeveralCompilesAtTheSameTime) {
  PlanProblem problem = timed_problem();
  problem.given_is_candidate = true;
  problem.is_concurrent = true;
  PlanResult two = search(problem, {.most_compiled = 9, .jobs = 2});
  EXPECT_EQ(two.compiled, 9u);
  PlanResult again = search(problem, {.most_compiled = 9, .jobs = 2});
  ASSERT_EQ(two.ranking.size(), again.ranking.size());
  for (std::size_t i = 0; i < two.ranking.size(); ++i)
    EXPECT_EQ(two.ranking[i].candidate, again.ranking[i].candidate);
  // An exception in a thread ends the search.
  problem.compile = [](const PlanCandidate&) -> Result<ProgramReport> {
    throw std::runtime_error("the user's own");
  };
  EXPECT_THROW(search(problem, {.jobs = 4}), std::runtime_error);
}

TEST(Search, TheTimeLimitStopsRunningCompiles) {
  PlanProblem problem = timed_problem();
  problem.given_is_candidate = true;
  problem.ended = std::make_shared<std::atomic<bool>>(false);
  auto compile = problem.compile;
  std::size_t calls = 0;
  problem.compile = [&](const PlanCandidate& candidate) -> Result<ProgramReport> {
    if (++calls < 3) return compile(candidate);
    while (!problem.ended->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Error(ErrorCode::kCancelled, "stopped");
  };
  PlanResult found = search(problem, {.time_limit = std::chrono::milliseconds(50)});
  EXPECT_EQ(found.ended_by, "the time limit");
  EXPECT_FALSE(found.exhaustive);
  EXPECT_EQ(found.ranking.size(), found.compiled);
  EXPECT_LE(found.compiled, 2u);
  EXPECT_FALSE(problem.ended->load()) << "a later compile of the problem would be stopped";
  // The given program is not stopped.
  problem.compile_given = [&]() -> Result<ProgramReport> {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (problem.ended->load()) return Error(ErrorCode::kCancelled, "stopped");
    return compile(*problem.given);
  };
  found = search(problem, {.time_limit = std::chrono::milliseconds(1)});
  ASSERT_EQ(found.ranking.size(), 1u);
  EXPECT_TRUE(found.ranking[0].as_given);
  EXPECT_EQ(found.ended_by, "the time limit");
}

TEST(PlanResult, TheFrontOfTimeAndMemory) {
  auto planned = [](double seconds, std::int64_t memory, PlanOutcome outcome) {
    PlannedCandidate one;
    one.verdict = {.outcome = outcome, .memory = memory, .seconds = seconds};
    return one;
  };
  PlanResult result;
  result.ranking = {planned(1, 100, PlanOutcome::kFits), planned(2, 100, PlanOutcome::kFits),
                    planned(3, 40, PlanOutcome::kFits),  planned(4, 60, PlanOutcome::kFits),
                    planned(5, 30, PlanOutcome::kFits),  planned(6, 10, PlanOutcome::kTooBig)};
  EXPECT_THAT(result.front(), testing::ElementsAre(0u, 2u, 4u));
  EXPECT_THAT(result.to_string(1), HasSubstr("40 B, 3 s: 3."));
  EXPECT_TRUE(PlanResult().front().empty());
}

// A forward pass of two products: x over "data", v by columns and w by rows over "model". A device
// has 40 KiB. The weights have 64 KiB: split over 2 devices they leave too little memory, over 4
// they fit.
class ToySearch : public testing::Test {
 protected:
  ToySearch() { std::filesystem::remove(journal_); }
  ~ToySearch() override { std::filesystem::remove(journal_); }
  void SetUp() override {
    ASSERT_TRUE(install_runtime());
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
    problem_.identity = "toy";
    problem_.devices = 8;
    problem_.axes = {"data", "model"};
    problem_.values = {{"v", {DType::f32, Shape{32, 256}}, P(none, unconstrained)},
                       {"w", {DType::f32, Shape{256, 32}}, P(unconstrained, none)}};
    problem_.capacity = kCapacity;
    problem_.compile = [this](const PlanCandidate& candidate) { return compiled(candidate); };
  }

  Result<ProgramReport> compiled(const PlanCandidate& candidate) {
    if (compiles_ == stop_after_) return Error(ErrorCode::kCancelled, "the user's wish");
    ++compiles_;
    Mesh mesh(candidate.axes);
    auto ones = [&](Shape shape, const PartitionSpec& spec) {
      std::vector<float> values(static_cast<std::size_t>(shape.size()), 1.0f);
      return mark_sharding(from_host(std::move(values), std::move(shape)), mesh, spec);
    };
    auto product = [](const Tensor& a, const Tensor& b) {
      return dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}});
    };
    auto f = jit([&](Tensor x, Tensor v, Tensor w) {
      return mark_sharding(product(tanh(product(x, v)), w), mesh, P("data", none));
    });
    f(ones({64, 32}, P("data", none)), ones({32, 256}, candidate.specs[0]),
      ones({256, 32}, candidate.specs[1]));
    ProgramReport::Parts parts = explain(f).parts();
    parts.memory->capacity = kCapacity;
    return ProgramReport(std::move(parts));
  }

  static void expect_the_best(const PlanResult& found) {
    ASSERT_TRUE(found.anything_fits()) << found.to_string(50);
    EXPECT_EQ(found.ranking[0].candidate.to_string(),
              "data=2,model=4; P(none, \"model\"); P(\"model\", none)")
        << found.to_string(50);
    // One all-reduce of the result's shard: 64 / 2 rows of 32 floats.
    EXPECT_EQ(found.ranking[0].verdict.collective_bytes, 32 * 32 * 4);
  }

  static constexpr std::int64_t kCapacity = 40 * 1024;
  PlanProblem problem_;
  std::size_t compiles_ = 0, stop_after_ = 1000;
  std::string journal_ = testing::TempDir() + "toy_search.journal";
};

TEST_F(ToySearch, FindsTheKnownBestAlsoAfterItWasEnded) {
  stop_after_ = 7;
  EXPECT_TRUE(throws_error([&] { search(problem_, {.journal = journal_}); }, ErrorCode::kCancelled,
                           {"search_test.cc:"}));
  stop_after_ = 1000;
  PlanResult found = search(problem_, {.journal = journal_});
  EXPECT_EQ(found.resumed, 7u);
  EXPECT_EQ(found.compiled + 7, compiles_);
  EXPECT_EQ(found.compiled + found.resumed + found.ruled_out, found.candidates);
  expect_the_best(found);
  std::size_t all = compiles_;
  expect_the_best(search(problem_, {.journal = journal_}));
  EXPECT_EQ(compiles_, all);
}

TEST_F(ToySearch, AJournalIsOfOneProblem) {
  stop_after_ = 1;
  EXPECT_THROW(search(problem_, {.journal = journal_}), Error);
  problem_.values[0].spec = P(unconstrained, unconstrained);
  EXPECT_TRUE(throws_error([&] { search(problem_, {.journal = journal_}); },
                           ErrorCode::kFailedPrecondition, {"search_test.cc:"}));
}

}  // namespace
}  // namespace meshard
