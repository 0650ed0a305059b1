// explicit_rules.json: the sharding of one op's result over explicit axes, or the error for an
// ambiguous one. Nothing is compiled.
#include <map>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tools/conformance/difference.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/inputs.h"

namespace meshard::conformance {
namespace explicit_rules_cases {

using Operands = std::span<const Tensor>;
using Call = Tensor (*)(Operands x, const Json& params);

Dimensions dimensions_of(const Json& list) {
  Dimensions dimensions;
  for (std::int64_t each : list) dimensions.push_back(each);
  return dimensions;
}

Tensor call_dot_general(Operands x, const Json& params) {
  const Json &contract = params.at("contract"), &batch = params.at("batch");
  return dot_general(x[0], x[1],
                     {.lhs_contracting = dimensions_of(contract[0]),
                      .rhs_contracting = dimensions_of(contract[1]),
                      .lhs_batch = dimensions_of(batch[0]),
                      .rhs_batch = dimensions_of(batch[1])});
}

Tensor call_slice(Operands x, const Json& params) {
  Dimensions stride;
  if (params.contains("strides")) stride = dimensions_of(params.at("strides"));
  return slice(x[0], dimensions_of(params.at("start")), dimensions_of(params.at("limit")), stride);
}

Tensor call_expand_dims(Operands x, const Json& params) {
  Tensor out = x[0];
  for (std::int64_t dimension : params.at("dims")) out = expand_dims(out, dimension);
  return out;
}

Tensor call_pad(Operands x, const Json& params) {
  Dimensions low, high, interior;
  for (const Json& each : params.at("config")) {
    low.push_back(each[0]);
    high.push_back(each[1]);
    interior.push_back(each[2]);
  }
  return pad(x[0], 0, low, high, interior);
}

// Selects between the last two tensors by the sign of the first one.
Tensor call_select(Operands x, const Json&) {
  return where(greater(x[0], 0), x[x.size() - 2], x[x.size() - 1]);
}

Dimensions axes_of(const Json& params) { return dimensions_of(params.at("axes")); }
std::int64_t axis_of(const Json& params) { return params.at("axis"); }

const std::map<std::string_view, Call> kCalls = {
    {"exp", [](Operands x, const Json&) { return exp(x[0]); }},
    {"neg", [](Operands x, const Json&) { return negative(x[0]); }},
    {"convert", [](Operands x, const Json&) { return astype(x[0], DType::bf16); }},
    {"add", [](Operands x, const Json&) { return add(x[0], x[1]); }},
    {"mul_numpy_broadcast", [](Operands x, const Json&) { return multiply(x[0], x[1]); }},
    {"dot_general", call_dot_general},
    {"transpose",
     [](Operands x, const Json& p) { return permute_dims(x[0], dimensions_of(p.at("perm"))); }},
    {"reshape",
     [](Operands x, const Json& p) { return reshape(x[0], dimensions_of(p.at("shape"))); }},
    {"reduce_sum", [](Operands x, const Json& p) { return sum(x[0], axes_of(p)); }},
    {"reduce_max", [](Operands x, const Json& p) { return max(x[0], axes_of(p)); }},
    {"reduce_min", [](Operands x, const Json& p) { return min(x[0], axes_of(p)); }},
    {"reduce_prod", [](Operands x, const Json& p) { return prod(x[0], axes_of(p)); }},
    {"broadcast_in_dim",
     [](Operands x, const Json& p) {
       return broadcast_in_dim(x[0], shape_of(p.at("shape")), dimensions_of(p.at("dims")));
     }},
    {"concatenate",
     [](Operands x, const Json& p) {
       return concat({x.begin(), x.end()}, axis_of(p));
     }},
    {"slice", call_slice},
    {"dynamic_slice",
     [](Operands x, const Json& p) {
       std::vector<In> starts(p.at("sizes").size(), In(0));
       return dynamic_slice(x[0], starts, dimensions_of(p.at("sizes")));
     }},
    {"dynamic_update_slice",
     [](Operands x, const Json&) {
       std::vector<In> starts(x[0].shape().sizes().size(), In(0));
       return dynamic_update_slice(x[0], x[1], starts);
     }},
    {"expand_dims", call_expand_dims},
    {"squeeze",
     [](Operands x, const Json& p) { return squeeze(x[0], dimensions_of(p.at("dims"))); }},
    {"cumsum", [](Operands x, const Json& p) { return cumulative_sum(x[0], axis_of(p)); }},
    {"sort", [](Operands x, const Json& p) { return sort(x[0], axis_of(p)); }},
    {"argmax", [](Operands x, const Json& p) { return argmax(x[0], axis_of(p)); }},
    {"argmin", [](Operands x, const Json& p) { return argmin(x[0], axis_of(p)); }},
    {"rev", [](Operands x, const Json& p) { return flip(x[0], axes_of(p)); }},
    {"pad", call_pad},
    {"select", call_select},
    {"softmax", [](Operands x, const Json& p) { return softmax(x[0], axis_of(p)); }},
    {"take",
     [](Operands x, const Json& p) { return take(x[0], astype(x[1], DType::i32), axis_of(p)); }},
    {"top_k", [](Operands x, const Json& p) { return top_k(x[0], p.at("k")).values; }},
};

Mesh explicit_mesh(const Json& fields) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < fields.at("axis_names").size(); ++i)
    axes.push_back({fields.at("axis_names")[i], fields.at("axis_sizes")[i], AxisKind::kExplicit});
  return Mesh(std::move(axes), SourceLocation{});
}

Json json_of_spec(const Sharding& sharding) {
  Json entries = Json::array();
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    Json names = Json::array();
    for (const AxisRef& axis : sharding.axes(d))
      names.push_back(axis.is_whole() ? axis.name : axis.to_string());
    entries.push_back(names.empty() ? Json() : names.size() == 1 ? names[0] : names);
  }
  return entries;
}

Json answer_to(const Json& test, const GoldenFile& file) {
  auto call = kCalls.find(test.at("op").get<std::string_view>());
  if (call == kCalls.end()) return {};
  Mesh mesh = explicit_mesh(file.meta.at("mesh"));
  internal::TraceScope trace;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < test.at("in_shapes").size(); ++i)
    operands.push_back(make_parameter({DType::f32, shape_of(test.at("in_shapes")[i])},
                                      Sharding(mesh, spec_of(test.at("in_specs")[i], mesh)),
                                      SourceLocation{}));
  try {
    Tensor out = call->second(operands, test.at("params"));
    return {{"out_shape", out.shape().sizes()}, {"out_spec", json_of_spec(*out.sharding())}};
  } catch (const Error& error) {
    bool ambiguous =
        error.message().find("the sharding of the result is ambiguous") != std::string::npos;
    return {{"error", ambiguous ? "ShardingTypeError" : error.message()}};
  }
}

Verdict judge_case(const Json& test, const Json& answer) {
  Json recorded = Json::object();
  for (const char* field : {"out_shape", "out_spec", "error"})
    if (test.contains(field)) recorded[field] = test.at(field);
  std::string different = first_difference(answer, recorded);
  return different.empty() ? Verdict() : Verdict::failed(std::move(different));
}

}  // namespace explicit_rules_cases

Suite explicit_rules_suite() {
  using namespace explicit_rules_cases;
  return {"explicit_rules.json", answer_to, judge_case};
}

}  // namespace meshard::conformance
