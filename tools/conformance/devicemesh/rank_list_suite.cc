// rank_list.json: the layout of an ascending list of ranks.
#include "meshard/layout/values.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/layout_judge.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace rank_list_cases {

/// Whether a layout is a regular grid in the reference's sense: modes do not interlock, each stride
/// is at least the next stride times its size. We also find layouts of other lists, which this
/// suite does not test.
bool is_regular(const Layout& axis) {
  std::span<const std::int64_t> sizes = axis.shape().leaves();
  std::span<const std::int64_t> strides = axis.stride().leaves();
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    if (strides[i] < strides[i + 1] * sizes[i + 1]) return false;
  return true;
}

Json layout_of_indices(const Json& input) {
  std::vector<std::int64_t> indices = input.at("indices");
  // The reference represents an empty list as one element; our lists are never empty.
  std::optional<Layout> found = indices.empty() ? Layout() : from_values(indices);
  if (!found || !is_regular(axis_of(*found)))
    throw GoldenError("AssertionError", "not_a_regular_grid");
  Layout axis = axis_of(*found);
  Json json = json_of(axis);
  json["reproduces_input"] = indices.empty() || values_of(axis) == indices;
  return json;
}

Json answer_to(const Json& input, const GoldenFile&) {
  if (input.at("fn") != "indices_to_layout") return {};
  return answer_or_error([&] { return layout_of_indices(input); });
}

/// The file marks two kinds of answers as invalid. A layout with `reproduces_input: false` is
/// wrong, so that an error is expected. Where the reference does not terminate, a layout must
/// reproduce the list.
Verdict judge_case(const Json& test, const Json& answer) {
  bool refused = answer.contains("expect_error");
  if (test.contains("expect") && test.at("expect").at("reproduces_input") == false) {
    if (refused) return {};
    return Verdict::failed("ours " + shortened(answer.at("expect")) + ", but there is no layout");
  }
  bool endless =
      test.contains("expect_error") && test.at("expect_error").at("code") == "infinite_recursion";
  if (endless && !refused && answer.at("expect").at("reproduces_input") == true) return {};
  return judge_layout_case(test, answer);
}

}  // namespace rank_list_cases

Suite rank_list_suite() {
  using namespace rank_list_cases;
  return {"rank_list.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
