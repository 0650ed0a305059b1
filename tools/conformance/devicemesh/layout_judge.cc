#include "tools/conformance/devicemesh/layout_judge.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "tools/conformance/devicemesh/rules.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

/// Whether one of the recorded compositions is wrong. False if there is nothing to compare with.
bool any_is_wrong(const std::function<std::vector<Composed>(const Json& test)>& composed,
                  const Json& test) {
  try {
    std::vector<Composed> parts = composed(test);
    return std::any_of(parts.begin(), parts.end(), [](const Composed& part) {
      return exact_composition(part.left, part.right, part.recorded);
    });
  } catch (const Error&) {
    return false;
  }
}

/// The difference between the answers; empty if there is none. Two errors always count as equal.
std::string difference_of(const Json& test, const Json& answer) {
  bool ours_fails = answer.contains("expect_error");
  bool recorded_fails = test.contains("expect_error");
  if (ours_fails && recorded_fails) return {};
  if (ours_fails)
    return cat("ours fails with ", answer.at("expect_error").dump(), ", recorded ",
               shortened(test.at("expect")));
  if (recorded_fails)
    return cat("ours ", shortened(answer.at("expect")), ", recorded fails with ",
               test.at("expect_error").dump());
  return first_difference(answer.at("expect"), test.at("expect"));
}

}  // namespace

Verdict judge_layout_case(const Json& test, const Json& answer,
                          const std::function<std::vector<Composed>(const Json& test)>& composed) {
  std::string difference = difference_of(test, answer);
  if (difference.empty()) return {};
  if (quirk(test.at("tags"))) return Verdict::by(Rule::kQuirk);
  bool only_ours_fails = answer.contains("expect_error") && !test.contains("expect_error");
  if (composed && only_ours_fails && any_is_wrong(composed, test))
    return Verdict::by(Rule::kExactComposition);
  return Verdict::failed(difference);
}

}  // namespace meshard::conformance
