#include "meshard/ops/full_to_shard.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/record.h"
#include "meshard/ops/composite/manual.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/internal/manual_boundary.h"
#include "meshard/ops/shard_to_full.h"

namespace meshard {
using namespace internal;
namespace {

void infer_full_to_shard(const OpCall& call, ResultTypes& results) {
  const auto& [sharding, manual] = call.as<FullToShardAttributes>();
  check_manual_sharding(call, sharding, manual, call.operand(0));
  Dimensions local;
  for (std::int64_t size : sharding->shard_shape(call.operand(0).shape)) local.push_back(size);
  results.push_back({call.operand(0).dtype, Shape(std::move(local))});
}

AnnotationsPtr annotate_full_to_shard(const Node& node) {
  const auto& [sharding, manual] = node.attributes_as<FullToShardAttributes>();
  const Mesh& mesh = sharding->mesh();
  AxisSet own(mesh, manual, node.where());
  ManualAxes place{mesh, own, splitting_axes(*sharding)};
  if (const ManualAxes* outer = manual_axes(node.operands()[0])) {
    auto fail = [&](const auto&... why) {
      fail_at(node, node.operands()[0].type(), " made at ", node.operands()[0]->where(),
              " is already a local value, ", *outer, why...);
    };
    if (!(outer->mesh == mesh)) fail(": it cannot enter manual axes of another mesh, ", mesh);
    if (AxisSet twice = own & outer->axes; !twice.empty())
      fail(": it cannot enter these manual axes twice, ", twice.to_string(mesh));
    if (own.empty()) fail(": no manual axis to enter is given");
    place.axes = outer->axes | own;
    place.varying = outer->varying | place.varying;
    place.around = outer->around;
    place.around.push_back(outer->axes);
  }
  return annotations_of(std::move(place));
}

// Every device holds its part of each member.
void batch_full_to_shard(const BatchCall& call, std::span<Tensor> results) {
  FullToShardAttributes attributes = call.as<FullToShardAttributes>();
  attributes.sharding = with_batch_dimension(*attributes.sharding, none);
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef full_to_shard_op = {
    .name = "full_to_shard",
    .operands = "x",
    .doc = "The part of a full value that each device holds: the entry to manual axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return exp(t); })(x)",
    .infer = infer_full_to_shard,
    .sharding_rule = collective::rule,
    // On one device the shard is the whole. Over several, lowering makes it an argument of a
    // region.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = shard_to_full(call.cotangents[0], *call.as<FullToShardAttributes>().sharding,
                                 call.operands[0].shape());
        },
    .batch = batch_full_to_shard,
    .samples =
        [](SampleSource& source) {
          return collective::samples(source, [](const Tensor& local) { return local; });
        },
    .annotate = annotate_full_to_shard,
    .parse_attributes = parse_attributes<FullToShardAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor full_to_shard(In x, const Sharding& sharding, AxisSet manual) {
  Tensor operand = operand_tensor(full_to_shard_op, x);
  auto rank = static_cast<std::size_t>(operand.shape().rank());
  return record(full_to_shard_op,
                make_attributes(FullToShardAttributes{
                    sharding.rank() < rank ? sharding.with_rank(rank, x.where) : sharding,
                    manual.of(sharding.mesh())}),
                {&operand}, x.where);
}

}  // namespace meshard
