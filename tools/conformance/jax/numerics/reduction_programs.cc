// red_*, cum*, dot_*, einsum_*: sums and their like.
#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

using Reduction = Tensor (*)(In, DimensionList, bool);

DimensionList dimensions_of(const Json& axes) {
  if (axes.is_null()) return {};
  Dimensions list;
  if (axes.is_number()) return DimensionList(axes.get<std::int64_t>());
  for (const Json& axis : axes) list.push_back(axis.get<std::int64_t>());
  return DimensionList(list);
}

Dimensions dimensions_at(const Json& pair, std::size_t i) {
  Dimensions list;
  for (const Json& d : pair.at(i)) list.push_back(d.get<std::int64_t>());
  return list;
}

Tensor variance(In x, DimensionList over, bool keepdims) { return var(x, over, 0, keepdims); }
Tensor deviation(In x, DimensionList over, bool keepdims) { return std_dev(x, over, 0, keepdims); }
Tensor euclidean(In x, DimensionList over, bool keepdims) {
  return sqrt(sum(square(x), over, keepdims));
}
Tensor span_of(In x, DimensionList over, bool keepdims) {
  return max(x, over, keepdims) - min(x, over, keepdims);
}
Tensor non_zeros(In x, DimensionList over, bool keepdims) {
  return sum(not_equal(x, 0), over, keepdims);
}

const std::map<std::string, Reduction, std::less<>> kReductions{
    {"sum", sum},        {"prod", prod},        {"max", max},     {"min", min},
    {"mean", mean},      {"any", any},          {"all", all},     {"logsumexp", logsumexp},
    {"var", variance},   {"std", deviation},    {"ptp", span_of}, {"count_nonzero", non_zeros},
    {"norm", euclidean}, {"l2norm", euclidean},
};

const Programs& special_reductions() {
  static const Programs programs{
      {"red_max_ties", single([](Inputs x) { return max(x[0], 1); })},
      {"red_min_ties", single([](Inputs x) { return min(x[0], 1); })},
      {"red_max_nan", single([](Inputs x) { return max(x[0]); })},
      {"red_min_nan", single([](Inputs x) { return min(x[0]); })},
      {"red_argmax",
       [](Inputs x) {
         return Tensors{argmax(x[0], 1), argmin(x[0], 1)};
       }},
      {"red_empty",
       [](Inputs x) {
         return Tensors{sum(x[0], 0), prod(x[0], 0)};
       }},
      {"red_any_all",
       [](Inputs x) {
         return Tensors{any(x[0], 1), all(x[0], 1)};
       }},
  };
  return programs;
}

std::optional<Program> reduction(const std::string& id, const Json& test) {
  if (auto found = find_program(special_reductions(), id)) return found;
  std::string kind;
  for (const auto& [name, op] : kReductions)
    if ((id + "_").starts_with("red_" + name + "_") && name.size() > kind.size()) kind = name;
  DimensionList over = 0;
  if (test.at("params").contains("axes")) {
    over = dimensions_of(test.at("params").at("axes"));
  } else {
    // `int32 sum`: along the dimension that is gone.
    for (const auto& [name, op] : kReductions)
      if (kind.empty() && id.ends_with("_" + name)) kind = name;
    if (result_shape(test).rank() == 0) over = DimensionList{};
  }
  if (id.starts_with("red_argm")) {
    auto index = id.starts_with("red_argmax") ? argmax : argmin;
    const Json axes = test.at("params").value("axes", Json(1));
    std::optional<std::int64_t> along;
    if (!axes.is_null()) along = axes.is_array() ? axes.at(0).get<std::int64_t>() : axes.get<int>();
    return single([=](Inputs x) { return index(x[0], along, false); });
  }
  if (kind.empty()) return std::nullopt;
  return single([over, op = kReductions.at(kind)](Inputs x) { return op(x[0], over, false); });
}

// `axis 0 reversed`
std::optional<Program> cumulative(const std::string& id, const std::string& what) {
  using Cumulative = Tensor (*)(In, std::int64_t, bool);
  static const std::map<std::string, Cumulative, std::less<>> kinds{
      {"cumsum", cumulative_sum},
      {"cumprod", cumulative_prod},
      {"cummax", cumulative_max},
      {"cummin", cumulative_min},
      {"cumlogsumexp", cumulative_logsumexp},
  };
  auto found = kinds.find(id.substr(0, id.find('_')));
  if (found == kinds.end()) return std::nullopt;
  std::int64_t axis = integer_behind(what, "axis", 0);
  bool reverse = mentions(what, "revers") || mentions(id, "revers");
  return single([=, op = found->second](Inputs x) { return op(x[0], axis, reverse); });
}

}  // namespace

std::optional<Program> reduction_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  const Json& params = test.at("params");
  if (id.starts_with("red_")) return reduction(id, test);
  if (id.starts_with("cum")) return cumulative(id, what);
  if (params.contains("contract")) {
    DotDimensions dims{dimensions_at(params.at("contract"), 0),
                       dimensions_at(params.at("contract"), 1),
                       dimensions_at(params.at("batch"), 0), dimensions_at(params.at("batch"), 1)};
    return single([dims, to = result_dtype(test)](Inputs x) {
      return x[0].dtype() == to ? dot_general(x[0], x[1], dims) : dot_general(x[0], x[1], dims, to);
    });
  }
  if (id.starts_with("dot_"))
    return single([to = result_dtype(test)](Inputs x) {
      return dot_general(x[0], x[1], {.lhs_contracting = {x[0].rank() - 1}, .rhs_contracting = {0}},
                         to);
    });
  if (params.contains("equation")) {
    std::string equation = params.at("equation");
    return single([equation](Inputs x) { return einsum(equation, Tensors(x.begin(), x.end())); });
  }
  return std::nullopt;
}

}  // namespace meshard::conformance
