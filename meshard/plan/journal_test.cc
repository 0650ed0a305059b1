#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "meshard/plan/search.h"

namespace meshard {
namespace {

using testing::HasSubstr;

class Journal : public testing::Test {
 protected:
  Journal() { std::filesystem::remove(path_); }
  ~Journal() override { std::filesystem::remove(path_); }
  std::string candidate(std::int64_t size) const {
    return PlanCandidate{{{.name = "x", .size = size}}, {P("x")}}.to_string();
  }
  std::string path_ = testing::TempDir() +
                      testing::UnitTest::GetInstance()->current_test_info()->name() +
                      "_plan.journal";
};

TEST_F(Journal, WhatIsWrittenIsReadAgain) {
  PlanVerdict fits{.memory = 123,
                   .capacity = 456,
                   .seconds = 0.1,
                   .basis = TimeBasis::kSchedule,
                   .exposed_seconds = 0.02,
                   .hidden_seconds = 0.3,
                   .return_seconds = 0.01,
                   .collective_bytes = 7};
  PlanVerdict refused{.outcome = PlanOutcome::kRefused, .problem = "bad\tmodule\nline 2"};
  {
    PlanJournal journal = PlanJournal::open(path_, "problem").value();
    EXPECT_TRUE(journal.verdicts().empty());
    journal.add(candidate(2), fits).value();
    journal.add(candidate(4), refused).value();
  }
  PlanJournal journal = PlanJournal::open(path_, "problem").value();
  ASSERT_EQ(journal.verdicts().size(), 2u);
  EXPECT_EQ(journal.verdicts().at("x=2; P(\"x\")"), fits);
  EXPECT_EQ(journal.verdicts().at("x=4; P(\"x\")").problem, "bad module line 2");
}

TEST(JournalFormat, HasANumberForItsFields) {
  const PlanVerdict verdict;
  std::string names;
  visit_fields(verdict,
               [&](std::string_view name, const auto&) { names += std::string(name) + " "; });
  // If other fields are written, the number of the format in journal.cc must increase.
  EXPECT_EQ(names,
            "outcome memory capacity seconds basis exposed_seconds hidden_seconds return_seconds "
            "collective_bytes problem ");
}

TEST_F(Journal, ReadsAFileOfAnEarlierBuild) {
  std::ofstream(path_)
      << "meshard plan 3 problem\nx=2; P(\"x\")\tfits\t123\t456\t0.1\tschedule\t0.02\t"
         "0.3\t0.01\t7\t\t.\nx=4; P(\"x\")\ttoo big\t9\t8\t0\tunknown\t0\t0\t0\t0\t"
         "no memory\t.\nx=8; P(\"x\")\thuge\t9\t8\t0\tunknown\t0\t0\t0\t0\t\t.\n";
  PlanJournal journal = PlanJournal::open(path_, "problem").value();
  ASSERT_EQ(journal.verdicts().size(), 2u);
  EXPECT_EQ(journal.verdicts().at("x=2; P(\"x\")"), (PlanVerdict{.memory = 123,
                                                                 .capacity = 456,
                                                                 .seconds = 0.1,
                                                                 .basis = TimeBasis::kSchedule,
                                                                 .exposed_seconds = 0.02,
                                                                 .hidden_seconds = 0.3,
                                                                 .return_seconds = 0.01,
                                                                 .collective_bytes = 7}));
  EXPECT_EQ(
      journal.verdicts().at("x=4; P(\"x\")"),
      (PlanVerdict{
          .outcome = PlanOutcome::kTooBig, .memory = 9, .capacity = 8, .problem = "no memory"}));
}

TEST_F(Journal, ALineThatWasCutOffIsLeftOut) {
  {
    PlanJournal journal = PlanJournal::open(path_, "problem").value();
    journal.add(candidate(2), {.memory = 100}).value();
    journal.add(candidate(4), {.memory = 200}).value();
  }
  auto whole = std::filesystem::file_size(path_);
  for (std::uintmax_t cut : {1, 2, 3, 5, 9}) {
    std::filesystem::resize_file(path_, whole - cut);
    {
      PlanJournal journal = PlanJournal::open(path_, "problem").value();
      // If only its newline is missing, the line is complete.
      EXPECT_EQ(journal.verdicts().size(), cut == 1 ? 2u : 1u) << cut;
      journal.add(candidate(8), {.memory = 300}).value();
    }
    EXPECT_EQ(PlanJournal::open(path_, "problem").value().verdicts().at("x=8; P(\"x\")").memory,
              300);
    std::filesystem::remove(path_);
    PlanJournal again = PlanJournal::open(path_, "problem").value();
    again.add(candidate(2), {.memory = 100}).value();
    again.add(candidate(4), {.memory = 200}).value();
  }
}

TEST_F(Journal, OfAnotherSearch) {
  (void)PlanJournal::open(path_, "problem").value();
  Result<PlanJournal> other = PlanJournal::open(path_, "another");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(other.error().message(), HasSubstr("arguments changed"));
  std::ofstream(path_, std::ios::trunc) << "meshard plan 2 problem\n";
  EXPECT_THAT(PlanJournal::open(path_, "problem").error().message(),
              HasSubstr("another version of meshard"));
  std::ofstream(path_, std::ios::trunc) << "dear diary\n";
  EXPECT_THAT(PlanJournal::open(path_, "problem").error().message(), HasSubstr("not a journal"));
}

TEST_F(Journal, AFileThatCannotBeMade) {
  EXPECT_THAT(PlanJournal::open(path_ + "/nowhere/file", "problem").error().message(),
              HasSubstr("cannot open the journal"));
}

}  // namespace
}  // namespace meshard
