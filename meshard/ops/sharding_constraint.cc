#include "meshard/ops/sharding_constraint.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

void infer_sharding_constraint(const OpCall& call, ResultTypes& results) {
  const std::optional<Sharding>& sharding = call.as<ShardingMark>().sharding;
  if (!sharding) call.fail("no sharding was given for ", call.operand(0));
  if (sharding->rank() > static_cast<std::size_t>(call.operand(0).rank()))
    call.fail("the sharding describes ", sharding->rank(), " dimensions, ", call.operand(0),
              " has ", call.operand(0).rank(), ": ", *sharding);
  if (!sharding->unreduced_axes().empty() && call.operand(0).dtype == DType::bool_)
    call.fail(call.operand(0), " is not a sum, so it cannot be unreduced: ", *sharding);
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

std::vector<OpSample> sharding_constraint_samples(SampleSource& source) {
  auto as = [](Sharding sharding) {
    return [sharding](std::span<const Tensor> x) { return sharding_constraint(x[0], sharding); };
  };
  Mesh pair({{"x", 2}}), square({{"x", 2}, {"y", 2}});
  return {
      {"one device", {source.uniform(DType::f32, {8, 4})}, as(Sharding(Mesh(), P(), 2))},
      {"rows", {source.uniform(DType::f64, {8, 4})}, as(Sharding(pair, P("x")))},
      {"grid", {source.uniform(DType::f32, {8, 4})}, as(Sharding(square, P("y", "x")))},
      {"open",
       {source.uniform(DType::f32, {4, 4, 2})},
       as(Sharding(square, P(unconstrained, none, unconstrained)))},
      {"scalar", {source.uniform(DType::f32, {})}, as(Sharding(pair, P()))},
  };
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
    .samples = sharding_constraint_samples,
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
