#include "tools/conformance/txla/scenario/compute.h"

#include <functional>
#include <map>

#include "meshard/meshard.h"
#include "tools/conformance/txla/inputs.h"

namespace meshard::conformance {
namespace {

using Json = nlohmann::json;
using Args = std::vector<In>;

std::vector<Tensor> tensors_of(const Args& args) {
  std::vector<Tensor> tensors;
  for (const In& arg : args) tensors.push_back(*arg.tensor);
  return tensors;
}

Dimensions integers(const Json& list) {
  auto values = list.get<std::vector<std::int64_t>>();
  return Dimensions(values.begin(), values.end());
}

/// The dimensions in `dim`: one, a list, or all of them.
DimensionList dimensions_of(const Json& keywords) {
  if (!keywords.contains("dim")) return {};
  const Json& dim = keywords.at("dim");
  if (dim.is_array()) return DimensionList(integers(dim));
  return {dim.get<std::int64_t>()};
}

/// Indexes all of each dimension before `dim`, and `item` at `dim`.
Tensor indexed(const In& x, const Json& keywords, IndexItem item) {
  auto dim = keywords.value("dim", std::size_t{0});
  std::vector<IndexItem> items(dim, IndexItem(whole));
  items.push_back(item);
  return index(x, items);
}

Tensor sliced(const In& x, const Json& keywords) {
  return indexed(x, keywords,
                 range(keywords.at("start").get<std::int64_t>(),
                       keywords.at("stop").get<std::int64_t>(), keywords.value("step", 1)));
}

Tensor reshaped(const In& x, const Json& keywords) {
  return reshape(x, integers(keywords.at("shape")));
}

using Function = std::function<Tensor(const Args&, const Json& keywords)>;

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"add", [](const Args& a, const Json&) { return a[0] + a[1]; }},
      {"sub", [](const Args& a, const Json&) { return a[0] - a[1]; }},
      {"mul", [](const Args& a, const Json&) { return a[0] * a[1]; }},
      {"div", [](const Args& a, const Json&) { return a[0] / a[1]; }},
      {"matmul", [](const Args& a, const Json&) { return matmul(a[0], a[1]); }},
      {"relu", [](const Args& a, const Json&) { return relu(a[0]); }},
      {"neg", [](const Args& a, const Json&) { return -a[0]; }},
      {"sum", [](const Args& a, const Json& k) { return sum(a[0], dimensions_of(k)); }},
      {"max_values", [](const Args& a, const Json& k) { return max(a[0], {k.value("dim", 1)}); }},
      {"t", [](const Args& a, const Json&) { return permute_dims(a[0]); }},
      {"permute",
       [](const Args& a, const Json& k) { return permute_dims(a[0], integers(k.at("dims"))); }},
      {"reshape", [](const Args& a, const Json& k) { return reshaped(a[0], k); }},
      {"view", [](const Args& a, const Json& k) { return reshaped(a[0], k); }},
      {"slice", [](const Args& a, const Json& k) { return sliced(a[0], k); }},
      {"select", [](const Args& a,
                    const Json& k) { return indexed(a[0], k, k.at("index").get<std::int64_t>()); }},
      // Values are immutable and gradients are functions, so both return the value itself.
      {"clone", [](const Args& a, const Json&) { return *a[0].tensor; }},
      {"detach", [](const Args& a, const Json&) { return *a[0].tensor; }},
      {"to_dtype",
       [](const Args& a, const Json& k) {
         return astype(a[0], dtype_named(k.at("dtype").get<std::string>()));
       }},
      {"cat",
       [](const Args& a, const Json& k) { return concat(tensors_of(a), k.value("dim", 0)); }},
      {"einsum",
       [](const Args& a, const Json& k) {
         return einsum(k.at("equation").get<std::string>(), tensors_of(a));
       }},
  };
  return table;
}

}  // namespace

std::optional<Tensor> compute(const std::string& name, const Args& args, const Json& keywords) {
  auto found = functions().find(name);
  if (found == functions().end()) return std::nullopt;
  return found->second(args, keywords);
}

bool compute_in_place(const std::string& name, Tensor& target, In arg) {
  if (name == "add_") return target += arg, true;
  if (name == "sub_") return target -= arg, true;
  if (name == "mul_") return target *= arg, true;
  if (name == "div_") return target /= arg, true;
  return false;
}

}  // namespace meshard::conformance
