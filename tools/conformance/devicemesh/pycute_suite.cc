// pycute.json: integer tuples and the layout algebra.
#include <algorithm>

#include "meshard/layout/algebra.h"
#include "meshard/layout/int_tuple.h"
#include "meshard/layout/modes.h"
#include "tools/conformance/devicemesh/golden_error.h"
#include "tools/conformance/devicemesh/layout_adapter.h"
#include "tools/conformance/devicemesh/layout_judge.h"

namespace meshard::conformance {
namespace pycute_cases {

IntTuple a_of(const Json& input) { return tuple_of(input.at("a")); }
IntTuple b_of(const Json& input) { return tuple_of(input.at("b")); }
Layout layout_in(const Json& input) { return layout_of(input.at("layout")); }

/// Reads `null`, an integer, a layout, or an array of tilers.
Tiler tiler_of(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_object()) return layout_of(json);
  std::vector<Tiler> elements;
  for (const Json& element : json) elements.push_back(tiler_of(element));
  return Tiler(std::span<const Tiler>(elements));
}

/// The stride of a case; null means the compact one.
IntTuple stride_in(const Json& input, const IntTuple& shape) {
  if (input.at("stride").is_null()) return compact_stride(shape);
  return tuple_of(input.at("stride"));
}

Json crd2crd(const Json& input) {
  std::optional<IntTuple> source;
  if (!input.at("src").is_null()) source = tuple_of(input.at("src"));
  return json_of(convert_coordinate(tuple_of(input.at("crd")), tuple_of(input.at("dst")), source));
}

Json layout_call(const Json& input) {
  IntTuple coordinate = tuple_of(input.at("crd"));
  Layout layout = layout_in(input);
  if (has_hole(coordinate)) return json_with_values(slice(layout, coordinate));
  return layout(coordinate);
}

Json slice_with_offset(const Json& input) {
  OffsetLayout found = slice_and_offset(layout_in(input), tuple_of(input.at("crd")));
  return {{"layout", json_with_values(found.layout)}, {"offset", found.offset}};
}

/// `work(layout)`, or `work(layout, profile)` if the case has a profile.
template <class Work>
AnswerFunction with_profile(Work work) {
  return [work](const Json& input) {
    Layout layout = layout_in(input);
    if (!input.contains("profile")) return json_with_values(work(layout));
    return json_with_values(work(layout, tuple_of(input.at("profile"))));
  };
}

/// `work(a, b)` for a layout and a tiler.
template <class Work>
AnswerFunction with_tiler(Work work) {
  return [work](const Json& input) {
    return json_with_values(work(layout_of(input.at("a")), tiler_of(input.at("b"))));
  };
}

bool has_integer(const Json& tiler) {
  return tiler.is_number_integer() ||
         (tiler.is_array() && std::any_of(tiler.begin(), tiler.end(), has_integer));
}

bool has_layout(const Json& tiler) {
  return tiler.is_object() ||
         (tiler.is_array() && std::any_of(tiler.begin(), tiler.end(), has_layout));
}

/// In the reference, a product with an integer, or with nothing, is a division. Our products accept
/// only layouts, so such a case uses our division. A case that mixes both has no equivalent.
template <class Product, class Divide>
AnswerFunction with_product(Product product, Divide divide) {
  return [=](const Json& input) {
    const Json& b = input.at("b");
    if (has_integer(b) && has_layout(b)) return Json();
    Layout a = layout_of(input.at("a"));
    return json_with_values(has_layout(b) ? product(a, tiler_of(b)) : divide(a, tiler_of(b)));
  };
}

const Functions& tuple_functions() {
  static const Functions all = {
      {"flatten", [](const Json& input) { return json_of(flatten(a_of(input))); }},
      {"product", [](const Json& input) { return a_of(input).product(); }},
      {"tuple_max", [](const Json& input) { return largest(a_of(input)); }},
      {"signum", [](const Json& input) { return json_of(signs(a_of(input))); }},
      {"has_none", [](const Json& input) { return has_hole(a_of(input)); }},
      {"match_structure", [](const Json& input) { return a_of(input).congruent(b_of(input)); }},
      {"inner_product", [](const Json& input) { return inner_product(a_of(input), b_of(input)); }},
      {"elem_scale",
       [](const Json& input) { return json_of(elementwise_product(a_of(input), b_of(input))); }},
      {"shape_div",
       [](const Json& input) { return json_of(shape_divide(a_of(input), b_of(input)).value()); }},
      {"suffix_product",
       [](const Json& input) {
         return json_of(compact_stride(a_of(input), tuple_of(input.at("init"))));
       }},
      {"crd2idx",
       [](const Json& input) {
         IntTuple shape = tuple_of(input.at("shape"));
         return value_of(tuple_of(input.at("crd")), shape, stride_in(input, shape));
       }},
      {"idx2crd",
       [](const Json& input) {
         IntTuple shape = tuple_of(input.at("shape"));
         return json_of(coordinate_of(shape, stride_in(input, shape), tuple_of(input.at("idx"))));
       }},
      {"crd2crd", crd2crd},
      {"slice_",
       [](const Json& input) {
         return json_of(slice(tuple_of(input.at("trg")), tuple_of(input.at("crd"))));
       }},
  };
  return all;
}

const Functions& layout_functions() {
  static const Functions all = {
      {"size", [](const Json& input) { return layout_in(input).size(); }},
      {"cosize", [](const Json& input) { return layout_in(input).cosize(); }},
      {"layout_getitem",
       [](const Json& input) {
         std::vector<Layout> modes = modes_of(layout_in(input));
         return json_with_values(modes[python_index(input.at("i"), modes.size())]);
       }},
      {"make_layout",
       [](const Json& input) {
         return json_with_values(concatenate(layouts_of(input.at("layouts"))));
       }},
      {"layout_call", layout_call},
      {"slice_and_offset", slice_with_offset},
      {"complement",
       [](const Json& input) {
         return json_with_values(complement(layout_in(input), input.at("max_idx")).value());
       }},
  };
  return all;
}

#define MESHARD_OPERATION(name) \
  [](const auto&... arguments) { return Result<Layout>(name(arguments...)).value(); }

const Functions& algebra_functions() {
  static const Functions all = {
      {"coalesce", with_profile(MESHARD_OPERATION(coalesce))},
      {"filter", with_profile(MESHARD_OPERATION(filter))},
      {"composition", with_tiler(MESHARD_OPERATION(composition))},
      {"right_inverse",
       [](const Json& input) {
         return json_with_values(MESHARD_OPERATION(right_inverse)(layout_in(input)));
       }},
      {"left_inverse",
       [](const Json& input) {
         return json_with_values(MESHARD_OPERATION(left_inverse)(layout_in(input)));
       }},
      {"logical_divide", with_tiler(MESHARD_OPERATION(logical_divide))},
      {"zipped_divide", with_tiler(MESHARD_OPERATION(zipped_divide))},
      {"tiled_divide", with_tiler(MESHARD_OPERATION(tiled_divide))},
      {"logical_product",
       with_product(MESHARD_OPERATION(logical_product), MESHARD_OPERATION(logical_divide))},
      {"zipped_product",
       with_product(MESHARD_OPERATION(zipped_product), MESHARD_OPERATION(zipped_divide))},
      {"tiled_product",
       with_product(MESHARD_OPERATION(tiled_product), MESHARD_OPERATION(tiled_divide))},
  };
  return all;
}

#undef MESHARD_OPERATION

Json answer_to(const Json& input, const GoldenFile&) {
  for (const Functions* all : {&tuple_functions(), &layout_functions(), &algebra_functions()}) {
    Json answer = answer_by_name(*all, input);
    if (answer.is_null()) continue;
    bool has_counterpart = !answer.contains("expect") || !answer.at("expect").is_null();
    return has_counterpart ? answer : Json();
  }
  return {};
}

/// The modes of `layout` from `first` on, as one layout.
Layout modes_from(const Layout& layout, std::size_t first) {
  std::vector<Layout> modes = modes_of(layout);
  return concatenate(std::span<const Layout>(modes).subspan(first));
}

/// The operands that a case composed, mode by mode if its tiler is an array.
std::vector<Composed> composed_by(const std::string& function, const Layout& a, const Json& b,
                                  const Layout& recorded) {
  std::vector<Composed> parts;
  if (b.is_null()) return parts;
  if (b.is_array()) {  // zipped and tiled results mix the modes, so the rule does not apply
    if (function != "composition" && !function.starts_with("logical")) return parts;
    for (std::size_t i = 0; i < b.size(); ++i)
      for (Composed& part : composed_by(function, a.mode(i), b[i], recorded.mode(i)))
        parts.push_back(std::move(part));
    return parts;
  }
  Layout right = b.is_object() ? layout_of(b) : Layout(b.get<std::int64_t>());
  if (function == "composition") {
    parts.push_back({a, right, values_of(recorded)});
  } else if (function.ends_with("divide") || !b.is_object()) {
    Layout rest = complement(right, a.size()).value();
    parts.push_back({a, concatenate(std::vector<Layout>{right, rest}), values_of(recorded)});
  } else {
    Layout places = complement(a, a.size() * right.cosize()).value();
    parts.push_back({places, right, values_of(modes_from(recorded, 1))});
  }
  return parts;
}

std::vector<Composed> composed(const Json& test) {
  const Json& input = test.at("input");
  if (!input.contains("b") || !input.at("a").is_object()) return {};
  const Json& recorded = test.at("expect");
  // A size of 0, which our layouts do not allow: shorter than any input.
  if (tuple_of(recorded.at("shape")).product() == 0) return {{Layout(), Layout(), {}}};
  return composed_by(input.at("fn"), layout_of(input.at("a")), input.at("b"), layout_of(recorded));
}

Verdict judge_case(const Json& test, const Json& answer) {
  return judge_layout_case(test, answer, composed);
}

}  // namespace pycute_cases

Suite pycute_suite() {
  using namespace pycute_cases;
  return {"pycute.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
