#include "meshard/runtime/internal/across_processes/agreement.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>

namespace meshard {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kEnough = std::chrono::seconds(30);

// Threads take the parts of processes; they share the store of this process.
std::vector<Result<std::string>> in_processes(
    int count, const std::function<Result<std::string>(Store&, int)>& process) {
  std::vector<std::optional<Result<std::string>>> results(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      results[static_cast<std::size_t>(rank)] = process(processes().store(), rank);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<Result<std::string>> all;
  for (auto& result : results) all.push_back(*std::move(result));
  return all;
}

Intention intention_of(const std::string& key, std::vector<int> ranks, int rank, std::string text) {
  Fingerprint same = fingerprint(text.substr(0, text.find('\t')));
  return {.ranks = std::move(ranks),
          .rank = rank,
          .key = key,
          .fingerprint = same,
          .what = "run \"step\"",
          .announced_as = key + "/of/" + same.to_string(),
          .details = [text] { return text; }};
}

TEST(Agreement, OneMakesTheResultForAll) {
  std::atomic<int> made{0};
  auto results = in_processes(4, [&](Store& store, int rank) {
    Intention intention = intention_of("equal", {0, 1, 2, 3}, rank, "add");
    auto make = [&, rank] { return ++made, Result<std::string>(cat("made by ", rank)); };
    return agree(store, intention, make, kEnough);
  });
  EXPECT_EQ(made, 1);
  for (const auto& result : results) EXPECT_EQ(result.value(), "made by 0");
}

TEST(Agreement, SourceLinesMayDiffer) {
  auto results = in_processes(2, [](Store& store, int rank) {
    Intention intention = intention_of("lines", {0, 1}, rank, cat("add\ta.cc:", rank));
    return agree(
        store, intention, [] { return Result<std::string>("x"); }, kEnough);
  });
  for (const auto& result : results) EXPECT_EQ(result.value(), "x");
}

TEST(Agreement, ADifferenceIsAnErrorInAll) {
  auto results = in_processes(4, [](Store& store, int rank) {
    std::string text =
        rank == 2 ? "  add\ta.cc:1\n  exp\ta.cc:7\n" : "  add\ta.cc:1\n  log\ta.cc:5\n";
    Intention intention = intention_of("differ", {1, 2, 3}, rank, text);
    intention.fingerprint = fingerprint(text);
    intention.announced_as = "differ/outside";
    if (rank == 0) return result_of_others(store, intention, kEnough);
    auto unused = [] { return Result<std::string>("not made"); };
    return agree(store, intention, unused, kEnough);
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(
        result.error().what(),
        AllOf(HasSubstr("processes 1 and 3: run \"step\"; process 2: run \"step\""),
              HasSubstr("the first difference is `log` at a.cc:5 in process 1, and `exp` at "
                        "a.cc:7 in process 2")));
  }
}

TEST(Agreement, AnErrorOfTheResultReachesAll) {
  auto results = in_processes(3, [](Store& store, int rank) {
    Intention intention = intention_of("error", {0, 1}, rank, "add");
    if (rank == 2) return result_of_others(store, intention, kEnough);
    return agree(
        store, intention,
        [] {
          return Result<std::string>(
              Error(ErrorCode::kUnimplemented, "[compile] no").with_note("in add"));
        },
        kEnough);
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error().code(), ErrorCode::kUnimplemented);
    EXPECT_THAT(result.error().what(), AllOf(HasSubstr("[compile] no"), HasSubstr("in add")));
  }
}

TEST(Agreement, NamesThoseThatDoNotCome) {
  auto results = in_processes(2, [](Store& store, int rank) {
    Intention intention = intention_of("missing", {0, 1, 2, 3}, rank, "add");
    return agree(
        store, intention, [] { return Result<std::string>("x"); }, milliseconds(200));
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error().code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(result.error().what(),
                HasSubstr("processes 2 and 3 have not come within 0 s to run "
                          "\"step\", which processes 0, 1, 2 and 3"));
  }
}

TEST(Agreement, AProcessOutsideLearnsTheResult) {
  auto results = in_processes(3, [](Store& store, int rank) {
    Intention intention = intention_of("outside", {0, 2}, rank, "add");
    if (rank == 1) return result_of_others(store, intention, kEnough);
    return agree(
        store, intention, [] { return Result<std::string>("shardings"); }, kEnough);
  });
  for (const auto& result : results) EXPECT_EQ(result.value(), "shardings");
}

TEST(Agreement, AProcessOutsideLearnsWhatOneHasAnnounced) {
  auto results = in_processes(3, [](Store& store, int rank) -> Result<std::string> {
    Intention intention = intention_of("alone", {2}, rank, "add");
    Intention failing = intention_of("alone and wrong", {2}, rank, "add");
    if (rank != 2) {
      EXPECT_THAT(result_of_others(store, failing, kEnough).error().what(), HasSubstr("no memory"));
      return result_of_others(store, intention, kEnough);
    }
    announce(store, failing.announced_as, Error(ErrorCode::kResourceExhausted, "no memory"))
        .value();
    announce(store, intention.announced_as, std::string("shardings")).value();
    return std::string("shardings");
  });
  for (const auto& result : results) EXPECT_EQ(result.value(), "shardings");
}

}  // namespace
}  // namespace meshard
