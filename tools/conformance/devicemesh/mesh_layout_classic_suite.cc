// mesh_layout_classic.json: mesh layouts with any nesting, not normalized.

#include "meshard/layout/algebra.h"
#include "meshard/layout/modes.h"
#include "meshard/layout/values.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/layout_judge.h"

namespace meshard::conformance {
namespace mesh_layout_classic_cases {

Layout layout_in(const Json& input) { return layout_of(input.at("layout")); }

/// Joins modes; an integer mode stays an integer, as the reference splices it.
Json json_of_modes(std::span<const Layout> modes) { return json_of(concatenate(modes)); }

Json info(const Json& input) {
  Layout layout = layout_in(input);
  Layout flat = flatten(layout);
  Json sizes = Json::array();
  for (const Layout& mode : modes_of(layout)) sizes.push_back(mode.size());
  Json pairs = Json::array();
  for (std::size_t i = 0; i < flat.shape().leaves().size(); ++i)
    pairs.push_back({flat.shape().leaves()[i], flat.stride().leaves()[i]});
  Json json = json_of(layout);
  json["ndim"] = layout.rank();
  json["numel"] = layout.size();
  json["cosize"] = layout.cosize();
  json["top_level_sizes"] = sizes;
  json["sizes_and_strides"] = pairs;
  json["ranks"] = values_of(layout);
  json["non_overlapping"] = is_injective(layout);
  json["coalesced"] = json_of(coalesce(layout));
  json["nested"] = json_of_modes(std::vector<Layout>{layout});
  return json;
}

Json splice_of(const Json& input) {
  std::vector<Layout> with = modes_of(layout_of(input.at("with")));
  return json_of_modes(
      splice(modes_of(layout_in(input)), input.at("start"), input.at("end"), with));
}

Json item(const Json& input) {
  std::vector<Layout> modes = modes_of(layout_in(input));
  return json_of(modes[python_index(input.at("i"), modes.size())]);
}

Json unflatten_of(const Json& input) {
  std::vector<Layout> modes = modes_of(layout_in(input));
  std::size_t at = python_index(input.at("dim"), modes.size());
  return json_of_modes(unflatten(modes, at, tuple_of(input.at("sizes"))));
}

const Functions& functions() {
  static const Functions all = {
      {"info", info},
      {"composition",
       [](const Json& input) {
         Layout left = layout_of(input.at("left"));
         return json_of(composition(left, layout_of(input.at("right"))).value());
       }},
      {"complement",
       [](const Json& input) {
         return json_of(complement(layout_in(input), input.at("world")).value());
       }},
      {"global_ranks",
       [](const Json& input) { return global_ranks(layout_in(input), input.at("world")); }},
      {"splice", splice_of},
      {"getitem", item},
      {"unflatten", unflatten_of},
      {"remap",
       [](const Json& input) { return remap(modes_of(layout_in(input)), input.at("rank_map")); }},
  };
  return all;
}

Json answer_to(const Json& input, const GoldenFile&) { return answer_by_name(functions(), input); }

/// The operands that a case composed, for the rule exact-composition.
std::vector<Composed> composed(const Json& test) {
  const Json& input = test.at("input");
  if (input.at("fn") == "composition")
    return {{layout_of(input.at("left")), layout_of(input.at("right")),
             values_of(layout_of(test.at("expect")))}};
  if (input.at("fn") == "unflatten") {
    std::vector<Layout> modes = modes_of(layout_in(input));
    std::size_t at = python_index(input.at("dim"), modes.size());
    Layout right(tuple_of(input.at("sizes")));
    std::vector<Layout> recorded = modes_of(layout_of(test.at("expect")));
    std::span<const Layout> pieces(recorded);
    return {{modes[at], right, values_of(concatenate(pieces.subspan(at, right.rank())))}};
  }
  return {};
}

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_layout_case(test, answer, composed);
}

}  // namespace mesh_layout_classic_cases

Suite mesh_layout_classic_suite() {
  using namespace mesh_layout_classic_cases;
  return {"mesh_layout_classic.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
