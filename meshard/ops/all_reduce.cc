#include "meshard/ops/all_reduce.h"

#include "meshard/graph/annotate.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all_gather.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/axis_index.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/internal/ordered_bits.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/vary.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

std::string_view reducer(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return "stablehlo.add";
    case ReduceKind::kProd: return "stablehlo.multiply";
    case ReduceKind::kMax: return "stablehlo.maximum";
    case ReduceKind::kMin: return "stablehlo.minimum";
  }
  return "";
}

void infer_all_reduce(const OpCall& call, ResultTypes& results) {
  ReduceKind kind = call.as<AllReduceAttributes>().kind;
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_ && (kind == ReduceKind::kSum || kind == ReduceKind::kProd))
    call.fail("takes the ", enum_name(kind), " of integers or floats, not of ", operand,
              ": for bools use max (any) or min (all)");
  results.push_back(operand);
}

AnnotationsPtr annotate_all_reduce(const Node& node) {
  const auto& attributes = node.attributes_as<AllReduceAttributes>();
  const ManualAxes& place = collective::checked_place(node, attributes.axes, attributes.size);
  AxisSet whole = collective::whole_axes(place.mesh, attributes.axes);
  return annotations_of(place.with_varying(place.varying - whole));
}

// The product of the other devices' values, computed without division so that it is correct with
// zeros.
Tensor product_of_others(const Tensor& x, const AllReduceAttributes& attributes) {
  Tensor all = all_gather(expand_dims(x, 0), attributes.axes, 0);
  Tensor own = axis_index(x, attributes.axes);
  Dimensions members(static_cast<std::size_t>(all.shape().rank()), 1);
  members[0] = attributes.size;
  Tensor is_own = equal(iota(DType::i32, Shape(std::move(members)), 0), own);
  return prod(where(is_own, 1, all), 0);
}

void all_reduce_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& attributes = call.as<AllReduceAttributes>();
  const Tensor& x = call.operands[0];
  const ManualAxes& place = *manual_axes(x.value());
  // Over a sub-axis, the groups have different results, and all of them depend on x.
  Tensor cotangent = call.cotangents[0];
  if (AxisList parts = collective::parts_of_axes(attributes.axes); !parts.empty())
    cotangent = all_reduce(cotangent, parts);
  AxisList whole = collective::whole_axes(place.mesh, attributes.axes).of(place.mesh);
  switch (attributes.kind) {
    case ReduceKind::kSum: out[0] = vary(cotangent, whole); break;
    case ReduceKind::kProd: out[0] = multiply(cotangent, product_of_others(x, attributes)); break;
    case ReduceKind::kMax:
    case ReduceKind::kMin: {
      Tensor chosen = astype(equal(x, call.results[0]), x.dtype());
      out[0] = multiply(chosen, divide(cotangent, all_reduce(chosen, attributes.axes)));
      break;
    }
  }
}

void emit_all_reduce(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<AllReduceAttributes>();
  if (collective::write_alone(attributes.size, out)) return;
  bool largest = attributes.kind == ReduceKind::kMax;
  if (is_floating(call.result().dtype) && (largest || attributes.kind == ReduceKind::kMin))
    return emit_in_order_of_bits(call, out, largest ? NanEnd::kGreatest : NanEnd::kLeast,
                                 emit_all_reduce);
  stablehlo::OpWriter op = out.op("stablehlo.all_reduce");
  collective::write_groups(op, out, attributes.axes).unit("use_global_device_ids");
  collective::write_reducer(op, out, reducer(attributes.kind), call.operand(0).dtype).done();
}

template <ReduceKind kind>
Tensor over_x(const Tensor& local) {
  return all_reduce(local, "x", kind);
}

}  // namespace

extern constinit const OpDef all_reduce_op = {
    .name = "all_reduce",
    .operands = "x",
    .doc =
        "The sum, product, maximum or minimum of the local values of all devices along manual "
        "axes.",
    .example =
        "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(), [](Tensor t) { return all_reduce(t, "
        "\"x\"); })(x)",
    .infer = infer_all_reduce,
    .sharding_rule = collective::rule,
    .emit = emit_all_reduce,
    .vjp = all_reduce_vjp,
    .batch = batch_unchanged,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> all = collective::samples(source, over_x<ReduceKind::kSum>);
          for (OpSample& sample : collective::samples(source, over_x<ReduceKind::kProd>))
            all.push_back({"product, " + sample.name, sample.inputs, sample.call});
          for (OpSample& sample : collective::samples(source, over_x<ReduceKind::kMax>))
            all.push_back({"largest, " + sample.name, sample.inputs, sample.call});
          for (OpSample& sample : collective::samples(source, over_x<ReduceKind::kMin>))
            all.push_back({"smallest, " + sample.name, sample.inputs, sample.call});
          return all;
        },
    .annotate = annotate_all_reduce,
    .parse_attributes = parse_attributes<AllReduceAttributes>,
    .traits = {.is_collective = true},
};

Tensor all_reduce(In x, const CollectiveAxes& axes, ReduceKind kind) {
  Tensor operand = collective::local_operand(all_reduce_op, x);
  collective::Group group = collective::group_of(all_reduce_op, operand, axes, x.where);
  if (group.axes.empty()) return operand;
  return record(all_reduce_op,
                make_attributes(AllReduceAttributes{std::move(group.axes), group.size, kind}),
                {&operand}, x.where);
}

}  // namespace meshard
