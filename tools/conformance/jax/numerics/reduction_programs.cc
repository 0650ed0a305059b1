// red_*, cum*, dot_*, einsum_*: reductions and products.
#include <functional>
#include <sstream>

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
  return list;
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

// The dimensions that a case names, or the one that its result lacks. False if the latter is
// ambiguous.
bool read_dimensions(const Json& test, DimensionList& over) {
  const Json& params = test.at("params");
  if (params.contains("axes")) {
    over = dimensions_of(params.at("axes"));
    return true;
  }
  if (result_shape(test).rank() == 0) return true;
  const auto from = test.at("inputs").at(0).at("shape").get<std::vector<std::int64_t>>();
  const auto to = test.at("outputs").at(0).at("shape").get<std::vector<std::int64_t>>();
  int fitting = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    std::vector<std::int64_t> rest = from;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(d));
    if (rest != to) continue;
    over = DimensionList(static_cast<std::int64_t>(d));
    ++fitting;
  }
  return fitting == 1;
}

std::optional<Program> index_of_extreme(const std::string& id, const Json& test) {
  auto index = id.starts_with("red_argmax") ? argmax : argmin;
  const Json& params = test.at("params");
  if (!params.contains("axes")) return std::nullopt;
  const Json& axes = params.at("axes");
  std::optional<std::int64_t> along;
  if (!axes.is_null()) along = axes.is_array() ? axes.at(0).get<std::int64_t>() : axes.get<int>();
  return single([=](Inputs x) { return index(x[0], along, false); });
}

// `red_max_all` is a max, `red_int_sum` a sum: the first known name between underscores.
const Reduction* reduction_named(const std::string& id) {
  std::istringstream words(id);
  for (std::string word; std::getline(words, word, '_');)
    if (auto found = kReductions.find(word); found != kReductions.end()) return &found->second;
  if (mentions(id, "count_nonzero")) return &kReductions.find("count_nonzero")->second;
  return nullptr;
}

std::optional<Program> reduction(const std::string& id, const Json& test) {
  if (id.starts_with("red_argm")) return index_of_extreme(id, test);
  DimensionList over;
  if (!read_dimensions(test, over)) return std::nullopt;
  if (id == "red_empty")
    return [over](Inputs x) { return Tensors{sum(x[0], over), prod(x[0], over)}; };
  if (id == "red_any_all")
    return [over](Inputs x) { return Tensors{any(x[0], over), all(x[0], over)}; };
  const Reduction* op = reduction_named(id);
  if (op == nullptr) return std::nullopt;
  return single([over, op = *op](Inputs x) { return op(x[0], over, false); });
}

// Reads `axis 0 reversed`.
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
  if (!mentions(what, "axis")) return std::nullopt;
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
