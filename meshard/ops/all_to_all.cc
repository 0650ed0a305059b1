#include "meshard/ops/all_to_all.h"

#include "meshard/graph/record.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/collective.h"

namespace meshard {
using namespace internal;
namespace {

void infer_all_to_all(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<AllToAllAttributes>();
  const TensorType& operand = call.operand(0);
  check_dimension(call, "split dimension", attributes.split);
  check_dimension(call, "concat dimension", attributes.concat);
  Dimensions sizes = operand.shape.sizes();
  std::int64_t& size = sizes[static_cast<std::size_t>(attributes.split)];
  if (size % attributes.size != 0)
    call.fail("dimension ", attributes.split, " of ", operand, " is not divisible by the ",
              attributes.size, " devices along ", meshard::to_string(attributes.axes));
  size /= attributes.size;
  sizes[static_cast<std::size_t>(attributes.concat)] *= attributes.size;
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

void batch_all_to_all(const BatchCall& call, std::span<Tensor> results) {
  AllToAllAttributes attributes = call.as<AllToAllAttributes>();
  ++attributes.split;
  ++attributes.concat;
  record_batched(call, make_attributes(std::move(attributes)), call.operands, results);
}

}  // namespace

extern constinit const OpDef all_to_all_op = {
    .name = "all_to_all",
    .operands = "x",
    .doc = "Each device along manual axes sends a part of its local value to every other device.",
    .example =
        "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
        "all_to_all(t, \"x\", 1, 0); })(x)",
    .infer = infer_all_to_all,
    .sharding_rule = collective::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& attributes = call.as<AllToAllAttributes>();
          if (collective::write_alone(attributes.size, out)) return;
          stablehlo::OpWriter op = out.op("stablehlo.all_to_all");
          op.i64("split_dimension", attributes.split)
              .i64("concat_dimension", attributes.concat)
              .i64("split_count", attributes.size);
          collective::write_groups(op, out, attributes.axes).done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<AllToAllAttributes>();
          out[0] =
              all_to_all(call.cotangents[0], attributes.axes, attributes.concat, attributes.split);
        },
    .batch = batch_all_to_all,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> all = collective::samples(
              source, [](const Tensor& local) { return all_to_all(local, "x", -1, 0); });
          for (OpSample& sample : collective::samples(
                   source, [](const Tensor& local) { return all_to_all(local, "x", 0, -1); }))
            all.push_back({"split rows, " + sample.name, sample.inputs, sample.call});
          return all;
        },
    .annotate = collective::annotate_same<AllToAllAttributes>,
    .parse_attributes = parse_attributes<AllToAllAttributes>,
    .traits = {.is_collective = true},
};

Tensor all_to_all(In x, const CollectiveAxes& axes, std::int64_t split, std::int64_t concat) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = collective::local_operand(all_to_all_op, x);
  collective::Group group = collective::group_of(all_to_all_op, operand, axes, x.where);
  split = normalize_dimension(split, operand.shape().rank(), all_to_all_op.name, where);
  concat = normalize_dimension(concat, operand.shape().rank(), all_to_all_op.name, where);
  operand = collective::varying_over(operand, group.axes);
  return record(
      all_to_all_op,
      make_attributes(AllToAllAttributes{std::move(group.axes), group.size, split, concat}),
      {&operand}, where);
}

}  // namespace meshard
