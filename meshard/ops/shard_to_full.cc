#include "meshard/ops/shard_to_full.h"

#include <algorithm>

#include "meshard/graph/annotate.h"
#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/record.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/full_to_shard.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/internal/manual_boundary.h"
#include "meshard/ops/vary.h"

namespace meshard {
using namespace internal;
namespace {

void infer_shard_to_full(const OpCall& call, ResultTypes& results) {
  const auto& [sharding, shape] = call.as<ShardToFullAttributes>();
  TensorType full{call.operand(0).dtype, shape};
  if (!sharding) call.fail("no sharding was given for ", full);
  check_manual_sharding(call, sharding, AxisSet::all(sharding->mesh()).of(sharding->mesh()), full);
  IntVector shard = sharding->shard_shape(shape);
  if (!std::equal(shard.begin(), shard.end(), call.operand(0).shape.begin(),
                  call.operand(0).shape.end()))
    call.fail("a shard of ", full, " under ", *sharding, " is [", join(shard, ","),
              "], but the local value is ", call.operand(0));
  results.push_back(std::move(full));
}

AnnotationsPtr annotate_shard_to_full(const Node& node) {
  const auto& [sharding, shape] = node.attributes_as<ShardToFullAttributes>();
  const Value& operand = node.operands()[0];
  const ManualAxes* place = manual_axes(operand);
  if (!place || !(place->mesh == sharding->mesh()))
    fail_at(node, operand.type(), " made at ", operand->where(), " is ",
            place ? place->to_string() : std::string("a full value"), ", not a local value of ",
            sharding->mesh());
  AxisSet split = splitting_axes(*sharding), varying = place->varying & place->own();
  if (!place->own().contains(split))
    fail_at(node, *sharding, " splits by axes that are not manual",
            place->depth() > 1 ? " in the innermost region" : "", ": the value is ", *place);
  if (AxisSet dropped = varying - split; !dropped.empty())
    fail_at(node, operand.type(), " made at ", operand->where(), " varies over ",
            dropped.to_string(place->mesh), ", which ", sharding->spec(),
            " does not name: the devices along it hold different values. Combine them first "
            "(all_reduce), or name the axis");
  if (!(varying == split))
    fail_at(node, "the value varies over ", varying.to_string(place->mesh), ", but ",
            sharding->spec(), " splits by ", split.to_string(place->mesh), ": use vary() first");
  if (place->depth() > 1) return annotations_of(place->at_depth(place->depth() - 1));
  return annotations_of(*sharding, sharding->rank());
}

void batch_shard_to_full(const BatchCall& call, std::span<Tensor> results) {
  ShardToFullAttributes attributes = call.as<ShardToFullAttributes>();
  attributes.sharding = with_batch_dimension(*attributes.sharding, none);
  attributes.shape = batched_shape(call.size, attributes.shape);
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef shard_to_full_op = {
    .name = "shard_to_full",
    .operands = "x",
    .doc = "The full value of which each device holds a part: the exit from manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return t; })(x)",
    .infer = infer_shard_to_full,
    .sharding_rule = collective::rule,
    // On one device the shard is the whole. Over several, lowering makes it a result of a region.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = full_to_shard(call.cotangents[0], *call.as<ShardToFullAttributes>().sharding,
                                 manual_axes(call.operands[0].value())->own());
        },
    .batch = batch_shard_to_full,
    .samples =
        [](SampleSource& source) {
          return collective::samples(source, [](const Tensor& local) { return local; });
        },
    .annotate = annotate_shard_to_full,
    .parse_attributes = parse_attributes<ShardToFullAttributes>,
};

Tensor shard_to_full(In x, const Sharding& sharding, const Shape& shape) {
  Tensor operand = operand_tensor(shard_to_full_op, x);
  if (!manual_axes(operand.value())) operand = collective::local_operand(shard_to_full_op, x);
  auto rank = static_cast<std::size_t>(shape.rank());
  Sharding whole = sharding.rank() < rank ? sharding.with_rank(rank, x.where) : sharding;
  if (const ManualAxes& place = *manual_axes(operand.value()); place.mesh == whole.mesh()) {
    AxisSet split = splitting_axes(whole);
    if (place.own().contains(split)) operand = widened(operand, place.with_varying(split));
  }
  return record(shard_to_full_op, make_attributes(ShardToFullAttributes{std::move(whole), shape}),
                {&operand}, x.where);
}

}  // namespace meshard
