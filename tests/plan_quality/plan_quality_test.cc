// A search finds shardings that are about as good as the best single change of mesh or spec, which
// tests/golden/plan records.
#include "tests/plan_quality/plan_quality.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "meshard/base/json_reader.h"
#include "meshard/base/whole_file.h"
#include "meshard/pjrt/plugin_search.h"

namespace meshard {
namespace {

PlanCandidate candidate_in(const JsonValue& json) {
  PlanCandidate candidate;
  for (const JsonMember& axis : json.find("axes")->members)
    candidate.axes.push_back(
        {.name = axis.name, .size = static_cast<std::int64_t>(*axis.value.whole_number())});
  for (const JsonValue& spec : json.find("specs")->elements)
    candidate.specs.push_back(PartitionSpec::parse(spec.text).value());
  return candidate;
}

// About as many compiles as take 60 s on two cores. The number is fixed, so that the result does
// not depend on the machine's speed.
constexpr std::size_t kMostCompiled = 50;

TEST(PlanQuality, AsGoodAsTheBestSingleChange) {
  if (!pjrt::find_plugins().first("tpu").ok()) GTEST_SKIP() << "no TPU compiler";
  const std::string folder = MESHARD_GOLDEN "/plan";
  JsonValue recorded = read_json(read_whole_file(folder + "/brute_force.json").value()).value();
  ASSERT_GE(recorded.elements.size(), 2u);
  std::size_t count = std::getenv("MESHARD_NIGHTLY") ? recorded.elements.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonValue& program = recorded.elements[i];
    const std::string& name = program.find("program")->text;
    SCOPED_TRACE(name);
    ModulePlan plan =
        plan_of_program(folder, name, program.find("topology")->text, /*use_cache=*/true);
    // The recorded candidate is compiled again: another compiler may need another time.
    PlanVerdict best = verdict_of_candidate(plan.problem, candidate_in(*program.find("best")));
    ASSERT_EQ(best.outcome, PlanOutcome::kFits) << best.problem;
    PlanResult found = search(plan.problem, {.most_compiled = kMostCompiled, .jobs = 2});
    ASSERT_TRUE(found.anything_fits()) << found.to_string();
    ASSERT_NE(found.given(), nullptr);
    EXPECT_LE(found.ranking[0].verdict.seconds, found.given()->verdict.seconds);
    EXPECT_LE(found.ranking[0].verdict.seconds, 1.05 * best.seconds) << found.to_string();
  }
}

}  // namespace
}  // namespace meshard
