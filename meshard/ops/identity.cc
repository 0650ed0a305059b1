#include "meshard/ops/identity.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/definition/define.h"

namespace meshard {

extern constinit const OpDef stop_gradient_op = element_wise::define({
    .name = "stop_gradient",
    .operands = "x",
    .example = "stop_gradient(x)",
    .domain = DTypeDomain::kAny,
    // A reshape to the same shape; the compiler removes it.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp = element_wise::zero_vjp,
    .traits = {.recomputation = Recomputation::kFree, .stops_gradient = true},
});

Tensor stop_gradient(In x) { return element_wise::unary(stop_gradient_op, x); }

namespace {

ShardingRule optimization_barrier_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  for (const TensorType* type : call.operands) {
    TensorFactors factors = own_factors(builder, type->shape);
    builder.operand(factors).result(factors);
  }
  return builder.build();
}

// The defined cotangents pass a barrier of their own.
void optimization_barrier_vjp(const VjpCall& call, std::span<Tensor> out) {
  std::vector<Tensor> cotangents;
  for (const Tensor& cotangent : call.cotangents)
    if (cotangent.defined()) cotangents.push_back(cotangent);
  cotangents = optimization_barrier(cotangents, call.node.where());
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (call.cotangents[i].defined()) out[i] = cotangents[next++];
}

}  // namespace

extern constinit const OpDef optimization_barrier_op = {
    .name = "optimization_barrier",
    .operands = "tensors...",
    .doc = "The same values; the compiler does not move or fuse operations across them.",
    .example = "optimization_barrier(x)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          if (call.operands.empty()) call.fail("takes at least one tensor");
          for (const TensorType* type : call.operands) results.push_back(*type);
        },
    .sharding_rule = optimization_barrier_rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.optimization_barrier").done(); },
    .read = {.mnemonic = "stablehlo.optimization_barrier"},
    .vjp = optimization_barrier_vjp,
    .batch = batch_unchanged,
};

std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors, SourceLocation where) {
  if (tensors.empty()) return {};
  return record_all(optimization_barrier_op, nullptr, tensors, where);
}

Tensor optimization_barrier(In x) {
  return optimization_barrier(std::vector{operand_tensor(optimization_barrier_op, x)}, x.where)[0];
}

namespace {

struct CheckpointNameAttributes {
  std::string name;
  MESHARD_FIELDS(name)
};

}  // namespace

extern constinit const OpDef checkpoint_name_op = {
    .name = "checkpoint_name",
    .operands = "x",
    .doc = "The operand itself, with a name by which policies of checkpoint() can keep it.",
    .example = "checkpoint_name(x, \"x\")",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const std::string& name = call.as<CheckpointNameAttributes>().name;
          if (name.empty() || name.find_first_of(",\"\\") != name.npos)
            call.fail("invalid name '", name, "': it is empty, or contains a comma or a quote");
          results.push_back(call.operand(0));
        },
    .sharding_rule = element_wise::rule,
    // A reshape to the same shape; the compiler removes it.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp = [](const VjpCall& call, std::span<Tensor> out) { out[0] = call.cotangents[0]; },
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<CheckpointNameAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor checkpoint_name(In x, std::string_view name) {
  Tensor operand = operand_tensor(checkpoint_name_op, x);
  return record(checkpoint_name_op, make_attributes(CheckpointNameAttributes{std::string(name)}),
                {&operand}, x.where);
}

const std::string* checkpoint_name_of(const Node& node) {
  return &node.op() == &checkpoint_name_op ? &node.attributes_as<CheckpointNameAttributes>().name
                                           : nullptr;
}

std::string_view why_not_unreduced(DType type, const Sharding& sharding) {
  if (sharding.unreduced_axes().empty()) return {};
  const bool is_sum = sharding.unreduced_kind() == UnreducedKind::kSum;
  if (is_sum && type == DType::bool_) return " is not a sum";
  if (!is_sum && is_complex(type)) return " has no order";
  return {};
}

namespace {

void infer_sharding_constraint(const OpCall& call, ResultTypes& results) {
  const std::optional<Sharding>& sharding = call.as<ShardingMark>().sharding;
  if (!sharding) call.fail("no sharding was given for ", call.operand(0));
  if (sharding->rank() > static_cast<std::size_t>(call.operand(0).rank()))
    call.fail("the sharding describes ", sharding->rank(), " dimensions, ", call.operand(0),
              " has ", call.operand(0).rank(), ": ", *sharding);
  if (std::string_view why = why_not_unreduced(call.operand(0).dtype, *sharding); !why.empty())
    call.fail(call.operand(0), why, ", so it cannot be unreduced: ", *sharding);
  results.push_back(call.operand(0));
}

// For a local value only the axes that are left to the compiler can be constrained.
AnnotationsPtr annotate_local(const Node& node, const ManualAxes& place) {
  const Value& operand = node.operands()[0];
  const Sharding& sharding = *node.attributes_as<ShardingMark>().sharding;
  if (!(sharding.mesh() == place.mesh))
    fail_at(node, operand.type(), " made at ", operand->where(), " is ", place,
            ", but the sharding is over ", sharding.mesh());
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    for (const AxisRef& axis : sharding.axes(d))
      if (place.axes.contains(place.mesh.axis_index(axis.name)))
        fail_at(node, "axis ", axis, " is manual here, so dimension ", d, " of ", operand.type(),
                " made at ", operand->where(), " cannot be split by it: the value is ", place);
  return operand->annotations();
}

// Over explicit axes the constraint is the result's sharding, regardless of the operand's.
AnnotationsPtr annotate_constraint(const Node& node) {
  if (const ManualAxes* place = manual_axes(node.operands()[0]))
    return annotate_local(node, *place);
  const Sharding& sharding = *node.attributes_as<ShardingMark>().sharding;
  if (!sharding.mesh().has_explicit_axes()) return annotate_by_operands(node);
  std::optional<Sharding> part = explicit_part(sharding);
  for (std::size_t d = 0; d < sharding.rank(); ++d)
    if (sharding.is_open(d) && !part->is_open(d))
      fail_at(node, "dimension ", d, " is open in ", sharding,
              ", but the compiler does not choose explicit axes: name axes, or use none");
  return annotations_of(sharding, sharding.rank());
}

// The sharding of the batch: vmap's mesh axis if given, otherwise the explicit sharding; without
// one it is left to the compiler.
DimensionSpec spec_of_batch(const BatchCall& call, const Sharding& member) {
  const Mesh& mesh = member.mesh();
  const ManualAxes* place = manual_axes(call.operands[0].value());
  std::optional<std::size_t> axis;
  if (!call.mesh_axis.empty()) axis = mesh.find_axis(call.mesh_axis);
  if (axis && !(place && place->axes.contains(*axis))) {
    AxisRef whole(call.mesh_axis);
    for (std::size_t d = 0; d < member.rank(); ++d)
      for (const AxisRef& other : member.axes(d))
        if (other.overlaps(whole))
          fail_at(call.node, "axis ", whole,
                  " cannot split the batch, because it already splits dimension ", d,
                  " of each member in ", member);
    return whole;
  }
  if (place || !mesh.has_explicit_axes()) return unconstrained;
  DimensionSpec present = explicit_batch(call.operands[0], member);
  return DimensionSpec(present.axes(), explicit_part(Sharding(mesh, P(unconstrained)))->is_open(0));
}

void batch_sharding_constraint(const BatchCall& call, std::span<Tensor> results) {
  const Sharding& member = *call.as<ShardingMark>().sharding;
  results[0] = sharding_constraint(call.operands[0],
                                   with_batch_dimension(member, spec_of_batch(call, member)));
}

}  // namespace

extern constinit const OpDef sharding_constraint_op = {
    .name = "sharding_constraint",
    .operands = "x",
    .doc = "The same value, laid out over a mesh as the sharding says.",
    .example = "sharding_constraint(x, Sharding(Mesh({{\"x\", 1}}), P(\"x\")))",
    .infer = infer_sharding_constraint,
    .sharding_rule = element_wise::rule,
    .mnemonic = "sdy.sharding_constraint",
    .emit =
        [](const OpCall&, OpEmission& out) {
          out.writer.sharding_constraint(out.results[0].value, out.operands[0].value,
                                         *out.results[0].type, out.sharding, out.location);
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Sharding sharding = call.as<ShardingMark>().sharding->with_unreduced({});
          const Sharding* present = explicit_sharding(call.cotangents[0].value());
          out[0] = present && *present == sharding
                       ? call.cotangents[0]
                       : sharding_constraint(call.cotangents[0], sharding);
        },
    .batch = batch_sharding_constraint,
    .annotate = annotate_constraint,
    .parse_attributes = parse_attributes<ShardingMark>,
    .traits = {.recomputation = Recomputation::kFree, .marks_sharding = true},
};

Tensor sharding_constraint(In x, const Sharding& sharding) {
  Tensor operand = operand_tensor(sharding_constraint_op, x);
  auto rank = static_cast<std::size_t>(operand.rank());
  // Canonical form: P("x") and P("x", none) are the same constraint on a matrix.
  return record(sharding_constraint_op,
                make_attributes(ShardingMark{
                    sharding.rank() < rank ? sharding.with_rank(rank, x.where) : sharding}),
                {&operand}, x.where);
}

}  // namespace meshard
