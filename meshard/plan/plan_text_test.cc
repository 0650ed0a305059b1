#include <gtest/gtest.h>

#include "meshard/base/json_reader.h"
#include "meshard/plan/search.h"

namespace meshard {
namespace {

TEST(PlanJson, CandidatesWithTheirFigures) {
  PlanResult result;
  result.candidates = 5;
  result.ended_by = "the time limit";
  PlannedCandidate best{.candidate = {{{.name = "x", .size = 4}}, {P("x", none)}},
                        .verdict = {.memory = 100,
                                    .seconds = 0.5,
                                    .basis = TimeBasis::kSchedule,
                                    .exposed_seconds = 0.125,
                                    .hidden_seconds = 2}};
  PlannedCandidate given{
      .candidate = {{{.name = "x", .size = 4}}, {P(none, "x")}},
      .as_given = true,
      .verdict = {
          .memory = 100, .seconds = 0.75, .basis = TimeBasis::kRoofline, .return_seconds = 0.25}};
  result.ranking = {best, given};
  JsonValue json =
      read_json(
          to_json(result, {{"w", {DType::f32, Shape{8, 8}}, P(unconstrained, unconstrained)}}, 1))
          .value();
  EXPECT_EQ(json.find("schema")->text, "meshard.plan");
  EXPECT_EQ(json.find("considered")->whole_number(), 5u);
  EXPECT_EQ(json.find("ended_by")->text, "the time limit");
  const std::vector<JsonValue>& candidates = json.find("candidates")->elements;
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_TRUE(candidates[0].find("on_front")->truth);
  EXPECT_FALSE(candidates[1].find("on_front")->truth);
  EXPECT_FALSE(candidates[0].find("as_given")->truth);
  EXPECT_TRUE(candidates[1].find("as_given")->truth);
  EXPECT_EQ(candidates[1].find("return_seconds")->text, "0.25");
  EXPECT_EQ(candidates[0].find("basis")->text, "schedule");
  EXPECT_EQ(candidates[1].find("basis")->text, "roofline");
  EXPECT_EQ(candidates[0].find("exposed_seconds")->text, "0.125");
  EXPECT_EQ(candidates[0].find("hidden_seconds")->text, "2");
  EXPECT_EQ(candidates[0].find("axes")->find("x")->whole_number(), 4u);
  const JsonValue& spec = candidates[0].find("specs")->elements[0];
  EXPECT_EQ(spec.find("name")->text, "w");
  EXPECT_EQ(spec.find("spec")->text, "P(\"x\", none)");
}

}  // namespace
}  // namespace meshard
