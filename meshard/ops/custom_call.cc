#include "meshard/ops/custom_call.h"

#include "meshard/ops/definition/define.h"
#include "meshard/ops/definition/host_call.h"

namespace meshard {
namespace {

struct CustomCallAttributes {
  std::string target;
  std::string results;  ///< the results' types, as `f32[4,8] i32[]`
  std::int64_t api_version = 4;
  std::string backend_config;
  bool has_side_effect = false;
  std::string sharding_rule;
  std::int64_t column_major_after = -1;
  MESHARD_FIELDS(target, results, api_version, backend_config, has_side_effect, sharding_rule,
                 column_major_after)
};

void infer_custom_call(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<CustomCallAttributes>();
  if (attributes.target.empty()) call.fail("requires a target");
  if (attributes.api_version < 1 || attributes.api_version > kTypedFfi)
    call.fail("api_version ", attributes.api_version, " is outside 1..", kTypedFfi);
  add_named_types(call, attributes.results, results);
  if (attributes.sharding_rule.empty()) return;
  Result<ShardingRule> rule = ShardingRule::parse(attributes.sharding_rule);
  if (!rule.ok()) call.fail("sharding rule: ", rule.error().message());
  std::vector<IntVector> of_operands, of_results;
  for (const TensorType* type : call.operands)
    of_operands.emplace_back(type->shape.begin(), type->shape.end());
  for (const TensorType& type : results)
    of_results.emplace_back(type.shape.begin(), type.shape.end());
  if (Result<void> fits = rule.value().validate(of_operands, of_results); !fits.ok())
    call.fail("sharding rule ", attributes.sharding_rule, ": ", fits.error().message());
}

ShardingRule custom_call_rule(const OpCall& call) {
  const std::string& rule = call.as<CustomCallAttributes>().sharding_rule;
  return rule.empty() ? whole_rule(call) : ShardingRule::parse(rule).value();
}

// The orders of the dimensions of values in memory, the fastest first.
std::string layouts_text(std::span<const stablehlo::Typed> values, std::int64_t batch) {
  std::vector<std::string> texts;
  for (const stablehlo::Typed& value : values) {
    std::vector<int> order;
    for (int d = value.type->rank() - 1; d >= 0; --d) order.push_back(d);
    if (std::ssize(order) == batch + 2) std::swap(order[0], order[1]);
    texts.push_back(
        order.empty() ? "dense<> : tensor<0xindex>"
                      : cat("dense<[", join(order, ", "), "]> : tensor<", order.size(), "xindex>"));
  }
  return cat("[", join(texts, ", "), "]");
}

void emit_custom_call(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<CustomCallAttributes>();
  stablehlo::OpWriter writer =
      out.writer.custom_call(attributes.target, out.results, out.operands, out.location);
  writer.boolean("has_side_effect", attributes.has_side_effect)
      .i32("api_version", static_cast<std::int32_t>(attributes.api_version));
  if (attributes.api_version != kTypedFfi)
    writer.string("backend_config", attributes.backend_config);
  else if (!attributes.backend_config.empty())
    writer.raw("backend_config", attributes.backend_config);
  if (attributes.column_major_after >= 0)
    writer.raw("operand_layouts", layouts_text(out.operands, attributes.column_major_after))
        .raw("result_layouts", layouts_text(out.results, attributes.column_major_after));
  if (!attributes.sharding_rule.empty())
    writer.discardable("sdy.sharding_rule", cat("#sdy.op_sharding_rule<",
                                                custom_call_rule(call).to_string(), ", custom>"));
  writer.done();
}

}  // namespace

extern constinit const OpDef custom_call_op = {
    .name = "custom_call",
    .operands = "tensors...",
    .doc = "Calls code that the plugin has under a name; the call specifies the result types.",
    .example = "custom_call(\"Qr\", {x}, {x.type(), {DType::f32, {2}}}, {.api_version = 1})[0]",
    .infer = infer_custom_call,
    .sharding_rule = custom_call_rule,
    .emit = emit_custom_call,
    .vjp = kNotDifferentiable,
    .batch = batch_one_by_one,
    .parse_attributes = parse_attributes<CustomCallAttributes>,
};

std::vector<Tensor> custom_call(const std::string& target, const std::vector<Tensor>& operands,
                                const std::vector<TensorType>& results, CustomCallOptions options,
                                SourceLocation where) {
  return record_all(
      custom_call_op,
      make_attributes(CustomCallAttributes{
          target, join(results, " "), options.api_version, std::move(options.backend_config),
          options.has_side_effect, std::move(options.sharding_rule), options.column_major_after}),
      operands, where);
}

}  // namespace meshard
