#include "meshard/ops/all_gather.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/record.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/axis_index.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/reduce_scatter.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

void infer_all_gather(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<AllGatherAttributes>();
  check_dimension(call, "dimension", attributes.dimension);
  Dimensions sizes = call.operand(0).shape.sizes();
  sizes[static_cast<std::size_t>(attributes.dimension)] *= attributes.size;
  results.push_back({call.operand(0).dtype, Shape(std::move(sizes))});
}

AnnotationsPtr annotate_all_gather(const Node& node) {
  const auto& attributes = node.attributes_as<AllGatherAttributes>();
  const ManualAxes& place = collective::checked_place(node, attributes.axes, attributes.size);
  if (!attributes.invariant) return node.operands()[0]->annotations();
  AxisSet over(place.mesh, attributes.axes, node.where());
  return annotations_of(place.with_varying(place.varying - over));
}

// The part of `x` along the dimension that this device contributed.
Tensor own_part(const Tensor& x, const Tensor& like, const AllGatherAttributes& attributes) {
  auto d = static_cast<std::size_t>(attributes.dimension);
  Dimensions apart = x.shape().sizes();
  apart[d] /= attributes.size;
  apart.insert(apart.begin() + attributes.dimension, attributes.size);
  Dimensions members(apart.size(), 1);
  members[d] = attributes.size;
  Tensor is_own = equal(iota(DType::i32, Shape(std::move(members)), attributes.dimension),
                        axis_index(like, attributes.axes));
  return sum(where(is_own, reshape(x, std::move(apart)), 0), attributes.dimension);
}

}  // namespace

extern constinit const OpDef all_gather_op = {
    .name = "all_gather",
    .operands = "x",
    .doc = "The local values of all devices along manual axes, concatenated.",
    .example =
        "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
        "all_gather(t, \"x\", 0); })(x)",
    .infer = infer_all_gather,
    .sharding_rule = collective::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& attributes = call.as<AllGatherAttributes>();
          if (collective::write_alone(attributes.size, out)) return;
          stablehlo::OpWriter op = out.op("stablehlo.all_gather");
          collective::write_groups(op.i64("all_gather_dim", attributes.dimension), out,
                                   attributes.axes)
              .unit("use_global_device_ids")
              .done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<AllGatherAttributes>();
          out[0] = attributes.invariant
                       ? own_part(call.cotangents[0], call.operands[0], attributes)
                       : reduce_scatter(call.cotangents[0], attributes.axes, attributes.dimension);
        },
    .batch = batch_along<AllGatherAttributes, &AllGatherAttributes::dimension>,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> all = collective::samples(
              source, [](const Tensor& local) { return all_gather(local, "x", 0); });
          for (OpSample& sample : collective::samples(source, [](const Tensor& local) {
                 return all_gather_invariant(local, "x", -1);
               }))
            all.push_back({"invariant, " + sample.name, sample.inputs, sample.call});
          return all;
        },
    .annotate = annotate_all_gather,
    .parse_attributes = parse_attributes<AllGatherAttributes>,
    .traits = {.is_collective = true},
};

namespace {

Tensor record_all_gather(const In& x, const CollectiveAxes& axes, std::int64_t dimension,
                         bool invariant) {
  Tensor operand = collective::local_operand(all_gather_op, x);
  collective::Group group = collective::group_of(all_gather_op, operand, axes, x.where);
  dimension = normalize_dimension(dimension, operand.shape().rank(), all_gather_op.name,
                                  effective_source(x.where));
  operand = collective::varying_over(operand, group.axes);
  return record(
      all_gather_op,
      make_attributes(AllGatherAttributes{std::move(group.axes), group.size, dimension, invariant}),
      {&operand}, x.where);
}

}  // namespace

Tensor all_gather(In x, const CollectiveAxes& axes, std::int64_t dimension) {
  return record_all_gather(x, axes, dimension, false);
}
Tensor all_gather_invariant(In x, const CollectiveAxes& axes, std::int64_t dimension) {
  return record_all_gather(x, axes, dimension, true);
}

}  // namespace meshard
