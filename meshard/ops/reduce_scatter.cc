#include "meshard/ops/reduce_scatter.h"

#include "meshard/graph/record.h"
#include "meshard/ops/all_gather.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {
using namespace internal;
namespace {

void infer_reduce_scatter(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<ReduceScatterAttributes>();
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_) call.fail("sums integers or floats, not ", operand);
  check_dimension(call, "dimension", attributes.dimension);
  Dimensions sizes = operand.shape.sizes();
  std::int64_t& size = sizes[static_cast<std::size_t>(attributes.dimension)];
  if (size % attributes.size != 0)
    call.fail("dimension ", attributes.dimension, " of ", operand, " is not divisible by the ",
              attributes.size, " devices along ", meshard::to_string(attributes.axes));
  size /= attributes.size;
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

}  // namespace

extern constinit const OpDef reduce_scatter_op = {
    .name = "reduce_scatter",
    .operands = "x",
    .doc =
        "The sum of the local values of all devices along manual axes; each device keeps a part of "
        "it.",
    .example =
        "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
        "reduce_scatter(t, \"x\", 0); })(x)",
    .infer = infer_reduce_scatter,
    .sharding_rule = collective::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& attributes = call.as<ReduceScatterAttributes>();
          if (collective::write_alone(attributes.size, out)) return;
          stablehlo::OpWriter op = out.op("stablehlo.reduce_scatter");
          collective::write_groups(op.i64("scatter_dimension", attributes.dimension), out,
                                   attributes.axes)
              .unit("use_global_device_ids");
          collective::write_reducer(op, out, "stablehlo.add", call.operand(0).dtype).done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<ReduceScatterAttributes>();
          out[0] = all_gather(call.cotangents[0], attributes.axes, attributes.dimension);
        },
    .batch = batch_along<ReduceScatterAttributes, &ReduceScatterAttributes::dimension>,
    .samples =
        [](SampleSource& source) {
          return collective::samples(
              source, [](const Tensor& local) { return reduce_scatter(local, "x", 0); });
        },
    .annotate = collective::annotate_same<ReduceScatterAttributes>,
    .parse_attributes = parse_attributes<ReduceScatterAttributes>,
    .traits = {.is_collective = true},
};

Tensor reduce_scatter(In x, const CollectiveAxes& axes, std::int64_t dimension) {
  Tensor operand = collective::local_operand(reduce_scatter_op, x);
  collective::Group group = collective::group_of(reduce_scatter_op, operand, axes, x.where);
  dimension = normalize_dimension(dimension, operand.shape().rank(), reduce_scatter_op.name,
                                  effective_source(x.where));
  operand = collective::varying_over(operand, group.axes);
  return record(
      reduce_scatter_op,
      make_attributes(ReduceScatterAttributes{std::move(group.axes), group.size, dimension}),
      {&operand}, x.where);
}

}  // namespace meshard
