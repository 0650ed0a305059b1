#include "meshard/ops/checkpoint.h"

#include <algorithm>

#include "meshard/graph/body_vjp.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/graph/superseded.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/bodies.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {
namespace {

void infer_checkpoint(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<CheckpointAttributes>();
  if (attributes.bodies.size() != 1)
    call.fail("must have one body, not ", attributes.bodies.size());
  if (Result<ResidualPolicy> policy = ResidualPolicy::parse(attributes.policy); !policy.ok())
    call.fail(policy.error().message());
  const Body& body = attributes.bodies[0];
  check_parameters(call, body, "the body", 0, 0, body.num_parameters());
  if (call.operands.size() != body.num_parameters())
    call.fail("has ", call.operands.size(), " operands for ", body.num_parameters(), " parameters");
  for (std::size_t i = 0; i < body.num_results(); ++i) results.push_back(body.result(i));
  if (results.empty()) call.fail("the body returns nothing");
}

// The backward pass recomputes from values behind an optimization barrier. Otherwise the compiler
// would merge the recomputation with the forward pass and keep the values.
void checkpoint_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& attributes = call.as<CheckpointAttributes>();
  const Body& body = attributes.bodies[0];
  SourceLocation where = call.node.where();
  std::vector<bool> has_cotangent, wanted(call.needed.begin(), call.needed.end());
  for (const Tensor& cotangent : call.cotangents) has_cotangent.push_back(cotangent.defined());
  std::vector<InBackward> back(wanted.size(), InBackward::kAvailable);
  BodyVjp vjp = call.bodies->differentiate(body, has_cotangent, wanted, back,
                                           ResidualPolicy::parse(attributes.policy).value(), where);
  std::vector<Tensor> kept, given;
  if (vjp.forward.num_results() > body.num_results()) {
    CheckpointAttributes more = attributes;
    more.bodies = {vjp.forward};
    more.extends = extension_key(*call.node.attributes(), body.num_results());
    internal::InheritSource forward_pass(where);
    kept = record_call(call.node.op(), make_attributes(std::move(more)), call.operands, where);
  }
  for (const Tensor& cotangent : call.cotangents)
    if (cotangent.defined()) given.push_back(cotangent);
  for (const BodyVjp::Residual& residual : vjp.residuals)
    given.push_back(residual.saved ? kept[residual.index] : call.operands[residual.index]);
  given = optimization_barrier(given, where);
  given.insert(given.end(), vjp.captured.begin(), vjp.captured.end());
  std::vector<Tensor> cotangents = inlined(vjp.backward, given);
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (wanted[i]) out[i] = cotangents[next++];
}

void checkpoint_batch(const BatchCall& call, std::span<Tensor> results) {
  const auto& attributes = call.as<CheckpointAttributes>();
  std::vector<bool> batched(call.batched.begin(), call.batched.end());
  BatchedResults made;
  BodyToTrace to_trace{{}, [&](std::span<const Tensor> given) {
                         made = batched_body(call, attributes.bodies[0], given, batched);
                         return made.values;
                       }};
  for (const Tensor& operand : call.operands) to_trace.inputs.push_back(body_input(operand));
  TracedBodies traced = trace_bodies(call.operands, {&to_trace, 1}, call.node.where());
  CheckpointAttributes again = attributes;
  again.bodies = std::move(traced.bodies);
  again.extends = extends_batched(again, attributes.extends);
  std::vector<Tensor> recorded = record_call(call.node.op(), make_attributes(std::move(again)),
                                             traced.operands, call.node.where());
  std::copy(recorded.begin(), recorded.end(), results.begin());
}

}  // namespace

extern constinit const OpDef checkpoint_op = {
    .name = "checkpoint",
    .operands = "arguments, captured...",
    .doc =
        "The results of a function; its derivative recomputes the values that the policy does not "
        "keep.",
    .example =
        "checkpoint_tensors({x}, [](std::span<const Tensor> t) { return std::vector{exp(t[0])}; }, "
        "{})[0]",
    .infer = infer_checkpoint,
    .sharding_rule = [](const OpCall& call) { return pass_through_rule(call, {}); },
    .emit =
        [](const OpCall&, OpEmission& out) {
          std::vector<stablehlo::Value> arguments;
          for (const stablehlo::Typed& operand : out.operands) arguments.push_back(operand.value);
          std::vector<stablehlo::Value> results = out.bodies->write(0, arguments);
          // Reshapes to the same shape give the values their result names; the compiler removes
          // them.
          for (std::size_t i = 0; i < results.size(); ++i)
            out.writer
                .op("stablehlo.reshape", {out.results[i]}, {{results[i], *out.results[i].type}},
                    out.location)
                .done();
        },
    .vjp = checkpoint_vjp,
    .batch = checkpoint_batch,
    .annotate =
        [](const Node& node) {
          const Body& body = node.attributes_as<CheckpointAttributes>().bodies[0];
          return annotate_by_body(node, body, body.num_results());
        },
    .parse_attributes = parse_attributes<CheckpointAttributes>,
};

std::vector<Tensor> checkpoint_tensors(const std::vector<Tensor>& arguments,
                                       const BodyFunction& body, const ResidualPolicy& policy,
                                       SourceLocation where) {
  where = effective_source(where);
  const std::vector<Tensor> passed = passed_arguments(arguments);
  BodyToTrace to_trace{{}, of_passed_arguments(body, arguments)};
  for (const Tensor& argument : passed) to_trace.inputs.push_back(body_input(argument));
  TracedBodies traced = trace_bodies(passed, {&to_trace, 1}, where);
  Body recorded = traced.bodies[0];
  CheckpointAttributes attributes{std::move(traced.bodies), policy.to_string(), {}};
  std::vector<Tensor> results = with_effects_kept(
      record_call(checkpoint_op, make_attributes(std::move(attributes)), traced.operands, where),
      where);
  // The shardings that the function's results are marked with are known outside of it, too.
  for (std::size_t i = 0; i < results.size(); ++i)
    if (std::optional<Sharding> mark = marked_sharding(recorded.graph().results()[i]))
      results[i] = sharding_constraint(results[i], *mark);
  return results;
}

}  // namespace meshard
