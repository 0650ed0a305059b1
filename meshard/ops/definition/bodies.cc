// Tested in meshard/ops/scan_test.cc.
#include "meshard/ops/definition/bodies.h"

#include <algorithm>

#include "meshard/graph/annotate.h"
#include "meshard/graph/effects.h"
#include "meshard/graph/evaluator.h"
#include "meshard/ops/all.h"
#include "meshard/ops/batching/batch_rule.h"
#include "meshard/ops/definition/host_call.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/branch_collectives.h"
#include "meshard/ops/rolling/roll_layers.h"

namespace meshard {
namespace {

// The manual axes that a call of these operands is inside of, varying over the union of the
// operands' axes.
std::optional<ManualAxes> common_place(std::span<const Tensor> operands) {
  std::optional<ManualAxes> place;
  if (internal::recorder().manual) place = *internal::recorder().manual;
  for (const Tensor& operand : operands) {
    const ManualAxes* manual = manual_axes(operand.value());
    if (!manual) continue;
    AxisSet varying = manual->varying | (place ? place->varying : AxisSet());
    // Operands of the regions around enter the innermost one.
    if (!place || manual->depth() > place->depth()) place = *manual;
    place->varying = varying;
  }
  return place;
}

BodyFunction rolling(const BodyFunction& function) {
  return [&function](std::span<const Tensor> parameters) {
    internal::RollingScope layers;
    return layers.rolled(function(parameters));
  };
}

BodyFunction widening(const BodyFunction& function, const ManualAxes& place) {
  return [&function, &place](std::span<const Tensor> parameters) {
    std::vector<Tensor> results = function(parameters);
    for (Tensor& result : results)
      if (result.defined()) result = widened(result, place);
    return results;
  };
}

}  // namespace

Result<void> parse(std::string_view text, std::vector<Body>& bodies) {
  MESHARD_ASSIGN_OR_RETURN(bodies, parse_bodies(text, find_op));
  return {};
}

std::vector<Tensor> passed_arguments(const std::vector<Tensor>& arguments) {
  std::vector<Tensor> passed;
  for (const Tensor& argument : arguments)
    if (!wide_number(argument).defined()) passed.push_back(argument);
  return passed;
}

BodyFunction of_passed_arguments(const BodyFunction& body, const std::vector<Tensor>& arguments) {
  return [&body, &arguments](std::span<const Tensor> passed) {
    std::vector<Tensor> all = arguments;
    std::size_t next = 0;
    for (Tensor& argument : all)
      if (!wide_number(argument).defined()) argument = passed[next++];
    return body(all);
  };
}

TracedBodies trace_bodies(std::span<const Tensor> given, std::span<const BodyToTrace> to_trace,
                          SourceLocation where) {
  std::vector<Tensor> known(given.begin(), given.end());
  for (const BodyToTrace& each : to_trace)
    known.insert(known.end(), each.own.begin(), each.own.end());
  std::optional<ManualAxes> place = common_place(known);
  for (;;) {
    TracedBodies traced;
    traced.operands.assign(given.begin(), given.end());
    AxisSet varying = place ? place->varying : AxisSet();
    for (const BodyToTrace& each : to_trace) {
      // The results are widened to a common set of axes, known only after tracing; hence the loop.
      BodyFunction function = rolling(each.function);
      TracedBody body =
          trace_body(each.inputs, place ? widening(function, *place) : function, place, where);
      traced.operands.insert(traced.operands.end(), each.own.begin(), each.own.end());
      traced.operands.insert(traced.operands.end(), body.captured.begin(), body.captured.end());
      traced.bodies.push_back(std::move(body.body));
      varying = varying | body.varying;
    }
    if (!place) return traced;
    if (varying == place->varying) {
      for (Tensor& operand : traced.operands) operand = widened(operand, *place);
      return traced;
    }
    place->varying = varying;
  }
}

TracedBodies trace_loop(std::vector<Tensor>& given, std::size_t carries,
                        std::span<BodyToTrace> to_trace, SourceLocation where) {
  for (;;) {
    std::vector<BodyToTrace> bodies(to_trace.begin(), to_trace.end());
    for (std::size_t b = 0; b < bodies.size(); ++b)
      bodies[b].function = [&, b](std::span<const Tensor> parameters) {
        std::vector<Tensor> inside(parameters.begin(), parameters.end());
        for (std::size_t i = 0; i < carries; ++i)
          if (wide_number(given[i]).defined()) inside[i] = weak_parameter(inside[i]);
        return to_trace[b].function(inside);
      };
    TracedBodies traced = trace_bodies(given, bodies, where);
    const Body& last = traced.bodies.back();
    bool is_settled = true;
    for (std::size_t i = 0; i < std::min(carries, last.num_results()); ++i) {
      const DType next = last.result(i).dtype;
      if (!wide_number(given[i]).defined() || next == given[i].dtype()) continue;
      if (!can_replace(given[i], next)) continue;  // an error of the op
      given[i] = astype(In(given[i], where), next);
      for (BodyToTrace& each : to_trace) each.inputs[i] = body_input(given[i]);
      is_settled = false;
    }
    if (is_settled) return traced;
  }
}

std::optional<ManualAxes> place_of(const Node& node) {
  return node.annotations() ? node.annotations()->manual : std::nullopt;
}

std::vector<Tensor> record_call(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                                std::span<const Tensor> operands, SourceLocation where) {
  std::vector<Tensor> results = record_all(op, std::move(attributes), operands, where);
  internal::check_branch_collectives(*results[0].value().node());
  return results;
}

std::vector<Tensor> with_effects_kept(std::vector<Tensor> results, SourceLocation where) {
  if (results.empty()) return results;
  const Node& node = *results[0].value().node();
  std::span<const Body> bodies = bodies_of(node);
  if (!std::any_of(bodies.begin(), bodies.end(), [](const Body& each) { return prints(each); }))
    return results;
  if (internal::EffectScope* scope = internal::EffectScope::current())
    scope->add([needed = results[0],
                where](const Tensor& x) { return internal::needing(In(x, where), {needed}); },
               where);
  else if (!tracing() && installed_evaluator())
    compute({results[0]}, where);
  return results;
}

void check_parameters(const OpCall& call, const Body& body, std::string_view which,
                      std::size_t from, std::size_t first, std::size_t count) {
  if (body.num_parameters() < from + count || call.operands.size() < first + count)
    call.fail(which, " has ", body.num_parameters(), " parameters, but the call has ",
              call.operands.size(), " operands");
  for (std::size_t i = 0; i < count; ++i)
    if (body.parameter(from + i) != call.operand(first + i))
      call.fail("operand ", first + i, " is ", call.operand(first + i), ", but parameter ",
                from + i, " of ", which, " is ", body.parameter(from + i));
}

AnnotationsPtr annotate_by_body(const Node& node, const Body& body, std::size_t stacked) {
  for (const Value& operand : node.operands())
    if (manual_axes(operand)) return annotate_by_operands(node);
  Annotations annotations;
  bool any = false;
  for (std::size_t i = 0; i < node.num_outputs(); ++i) {
    const Value& result = body.graph().results()[i];
    const Sharding* sharding = explicit_sharding(result);
    any = any || sharding;
    annotations.shardings.push_back(
        !sharding ? std::nullopt
                  : std::optional(i < stacked ? *sharding : stacked_sharding(*sharding)));
  }
  return any ? std::make_shared<const Annotations>(std::move(annotations)) : nullptr;
}

ShardingRule pass_through_rule(const OpCall& call,
                               std::span<const std::pair<std::size_t, std::size_t>> together) {
  ShardingRuleBuilder builder;
  std::vector<TensorFactors> operands;
  for (const TensorType* type : call.operands) {
    operands.push_back(own_factors(builder, type->shape));
    builder.operand(operands.back());
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const TensorFactors* known = nullptr;
    for (const auto& [operand, result] : together)
      if (result == i) known = &operands[operand];
    builder.result(known ? *known : own_factors(builder, call.result(i).shape));
  }
  return builder.build();
}

Sharding stacked_sharding(const Sharding& slice) {
  bool is_explicit = slice.mesh().has_explicit_axes();
  std::vector<DimensionSpec> dimensions;
  dimensions.emplace_back(AxisList(), /*is_open=*/!is_explicit);
  for (std::size_t d = 0; d < slice.rank(); ++d)
    dimensions.emplace_back(slice.axes(d), slice.is_open(d));
  return Sharding(slice.mesh(), PartitionSpec(std::move(dimensions)), SourceLocation{});
}

Sharding slice_sharding(const Sharding& stacked) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 1; d < stacked.rank(); ++d)
    dimensions.emplace_back(stacked.axes(d), stacked.is_open(d));
  return Sharding(stacked.mesh(), PartitionSpec(std::move(dimensions)), SourceLocation{});
}

BatchedResults batched_body(const BatchCall& call, const Body& body,
                            std::span<const Tensor> operands, const std::vector<bool>& batched) {
  InlineVector<bool, 8> flags;
  for (bool each : batched) flags.push_back(each);
  return batch_where_needed([&](std::span<const Tensor> members) { return inlined(body, members); },
                            operands, std::span<const bool>(flags.data(), flags.size()),
                            {call.size, call.mesh_axis}, call.node.where());
}

std::vector<Tensor> BatchedValues::expected(BatchedResults results, std::int64_t size) {
  for (std::size_t i = 0; i < batched_.size(); ++i) {
    if (results.batched[i])
      set(i);
    else if (batched_[i])
      results.values[i] = repeated_for_batch(results.values[i], size);
  }
  return std::move(results.values);
}

Tensor zero_cotangent(const Tensor& primal) {
  Tensor zero = zeros(primal.shape(), primal.dtype());
  const Sharding* part = explicit_sharding(primal.value());
  return part ? sharding_constraint(zero, *part) : zero;
}

}  // namespace meshard
