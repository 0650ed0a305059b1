#include "meshard/ops/collectives.h"

#include "meshard/graph/annotate.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/collective.h"
#include "meshard/ops/internal/element_writer.h"

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

extern constinit const OpDef all_gather_op = collective::define({
    .name = "all_gather",
    .doc = "The local values of all devices along manual axes, concatenated.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
               "all_gather(t, \"x\", 0); })(x)",
    .infer = infer_all_gather,
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
    .annotate = annotate_all_gather,
    .parse_attributes = parse_attributes<AllGatherAttributes>,
});

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
  if (loses_nans(call, out) && (largest || attributes.kind == ReduceKind::kMin))
    return emit_in_order_of_bits(call, out, largest ? NanEnd::kGreatest : NanEnd::kLeast,
                                 emit_all_reduce);
  stablehlo::OpWriter op = out.op("stablehlo.all_reduce");
  collective::write_groups(op, out, attributes.axes).unit("use_global_device_ids");
  write_reducer(op, out, reducer(attributes.kind), call.operand(0).dtype).done();
}

}  // namespace

extern constinit const OpDef all_reduce_op = collective::define({
    .name = "all_reduce",
    .doc = "The sum, product, maximum or minimum of the local values of all devices along manual "
           "axes.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(), [](Tensor t) { return all_reduce(t, "
               "\"x\"); })(x)",
    .infer = infer_all_reduce,
    .emit = emit_all_reduce,
    .vjp = all_reduce_vjp,
    .batch = batch_unchanged,
    .annotate = annotate_all_reduce,
    .parse_attributes = parse_attributes<AllReduceAttributes>,
});

Tensor all_reduce(In x, const CollectiveAxes& axes, ReduceKind kind) {
  Tensor operand = collective::local_operand(all_reduce_op, x);
  collective::Group group = collective::group_of(all_reduce_op, operand, axes, x.where);
  if (group.axes.empty()) return operand;
  return record(all_reduce_op,
                make_attributes(AllReduceAttributes{std::move(group.axes), group.size, kind}),
                {&operand}, x.where);
}

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

extern constinit const OpDef all_to_all_op = collective::define({
    .name = "all_to_all",
    .doc = "Each device along manual axes sends a part of its local value to every other device.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
               "all_to_all(t, \"x\", 1, 0); })(x)",
    .infer = infer_all_to_all,
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
    .annotate = collective::annotate_same<AllToAllAttributes>,
    .parse_attributes = parse_attributes<AllToAllAttributes>,
});

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

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

void check_members(const OpCall& call, std::string_view what,
                   const std::vector<std::int64_t>& members, std::int64_t size) {
  std::vector<bool> seen(static_cast<std::size_t>(size), false);
  for (std::int64_t member : members) {
    if (member < 0 || member >= size)
      call.fail(what, " ", member, " is outside 0..", size - 1, ", the members of a group");
    if (seen[static_cast<std::size_t>(member)])
      call.fail("member ", member, " appears twice as ", what);
    seen[static_cast<std::size_t>(member)] = true;
  }
}

void infer_collective_permute(const OpCall& call, ResultTypes& results) {
  const auto& attributes = call.as<CollectivePermuteAttributes>();
  if (attributes.sources.size() != attributes.targets.size())
    call.fail(attributes.sources.size(), " sources for ", attributes.targets.size(),
              " targets: give one source for each target");
  check_members(call, "source", attributes.sources, attributes.size);
  check_members(call, "target", attributes.targets, attributes.size);
  results.push_back(call.operand(0));
}

void emit_collective_permute(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<CollectivePermuteAttributes>();
  if (attributes.size == 1 && attributes.sources.empty())
    return out.writer.splat(out.results[0].value, call.result(), 0, out.location);
  if (collective::write_alone(attributes.size, out)) return;
  std::vector<std::vector<std::int64_t>> pairs;
  for (const auto& group : collective::logical_groups(*out.mesh, attributes.axes, *out.numbering))
    for (std::size_t i = 0; i < attributes.sources.size(); ++i)
      pairs.push_back({group[static_cast<std::size_t>(attributes.sources[i])],
                       group[static_cast<std::size_t>(attributes.targets[i])]});
  stablehlo::OpWriter op = out.op("stablehlo.collective_permute");
  collective::write_channel(op, out)
      .raw("source_target_pairs", collective::rows_text(pairs))
      .done();
}

}  // namespace

extern constinit const OpDef collective_permute_op = collective::define({
    .name = "collective_permute",
    .doc = "Sends local values from some devices along manual axes to others.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
               "collective_permute(t, \"x\", {{0, 0}}); })(x)",
    .infer = infer_collective_permute,
    .emit = emit_collective_permute,
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<CollectivePermuteAttributes>();
          Pairs back;
          for (std::size_t i = 0; i < attributes.sources.size(); ++i)
            back.emplace_back(attributes.targets[i], attributes.sources[i]);
          out[0] = collective_permute(call.cotangents[0], attributes.axes, back);
        },
    .batch = batch_unchanged,
    .annotate = collective::annotate_same<CollectivePermuteAttributes>,
    .parse_attributes = parse_attributes<CollectivePermuteAttributes>,
});

Tensor collective_permute(In x, const CollectiveAxes& axes, const Pairs& pairs) {
  Tensor operand = collective::local_operand(collective_permute_op, x);
  collective::Group group = collective::group_of(collective_permute_op, operand, axes, x.where);
  CollectivePermuteAttributes attributes{group.axes, group.size, {}, {}};
  for (const auto& [source, target] : pairs) {
    attributes.sources.push_back(source);
    attributes.targets.push_back(target);
  }
  operand = collective::varying_over(operand, group.axes);
  return record(collective_permute_op, make_attributes(std::move(attributes)), {&operand}, x.where);
}

Tensor ring_shift(In x, const CollectiveAxes& axes, std::int64_t by) {
  SourceScope line(x.where);
  Tensor operand = collective::local_operand(collective_permute_op, x);
  std::int64_t size = collective::group_of(collective_permute_op, operand, axes, x.where).size;
  Pairs pairs;
  for (std::int64_t i = 0; i < size; ++i) pairs.emplace_back(i, ((i + by) % size + size) % size);
  return collective_permute(In(operand, x.where), axes, pairs);
}

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

extern constinit const OpDef reduce_scatter_op = collective::define({
    .name = "reduce_scatter",
    .doc =
        "The sum of the local values of all devices along manual axes; each device keeps a part of "
        "it.",
    .example = "manual(Mesh({{\"x\", 1}}), P(\"x\"), P(\"x\"), [](Tensor t) { return "
               "reduce_scatter(t, \"x\", 0); })(x)",
    .infer = infer_reduce_scatter,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& attributes = call.as<ReduceScatterAttributes>();
          if (collective::write_alone(attributes.size, out)) return;
          stablehlo::OpWriter op = out.op("stablehlo.reduce_scatter");
          collective::write_groups(op.i64("scatter_dimension", attributes.dimension), out,
                                   attributes.axes)
              .unit("use_global_device_ids");
          write_reducer(op, out, "stablehlo.add", call.operand(0).dtype).done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& attributes = call.as<ReduceScatterAttributes>();
          out[0] = all_gather(call.cotangents[0], attributes.axes, attributes.dimension);
        },
    .batch = batch_along<ReduceScatterAttributes, &ReduceScatterAttributes::dimension>,
    .annotate = collective::annotate_same<ReduceScatterAttributes>,
    .parse_attributes = parse_attributes<ReduceScatterAttributes>,
});

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
