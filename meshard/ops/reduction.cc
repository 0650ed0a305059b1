#include "meshard/ops/reduction.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
using namespace internal;
namespace {

const Dimensions& reduced(const VjpCall& call) { return call.as<ReductionAttributes>().dimensions; }

// The dimensions of a tensor of `rank` that are not reduced.
Dimensions kept(const Dimensions& dimensions, int rank) {
  Dimensions out;
  for (int d = 0; d < rank; ++d)
    if (!holds(dimensions, d)) out.push_back(d);
  return out;
}

void infer_reduction(const OpCall& call, ResultTypes& results) {
  const Dimensions& dimensions = call.as<ReductionAttributes>().dimensions;
  const TensorType& operand = call.operand(0);
  if (is_float8(operand.dtype))
    call.fail("8-bit floats cannot be reduced directly; convert to f32 first: ", operand);
  check_ascending(call, dimensions);
  Dimensions sizes;
  for (std::int64_t d : kept(dimensions, operand.rank())) sizes.push_back(operand.shape[d]);
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

void infer_number(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype == DType::bool_)
    call.fail("takes integers or floats, not ", call.operand(0));
  infer_reduction(call, results);
}

void infer_extreme(const OpCall& call, ResultTypes& results) {
  if (is_complex(call.operand(0).dtype))
    call.fail("complex numbers have no order: ", call.operand(0));
  infer_number(call, results);
  for (std::int64_t d : call.as<ReductionAttributes>().dimensions)
    if (call.operand(0).shape[d] == 0)
      call.fail("cannot reduce an empty dimension: dimension ", d, " of ", call.operand(0),
                " is empty");
}

void infer_bool(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype != DType::bool_) call.fail("takes bools, not ", call.operand(0));
  infer_reduction(call, results);
}

ShardingRule reduction_rule(const OpCall& call) {
  const Dimensions& dimensions = call.as<ReductionAttributes>().dimensions;
  const Shape& shape = call.operand(0).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (int d = 0; d < shape.rank(); ++d) {
    bool gone = holds(dimensions, d);
    in.push_back(
        builder.factor(shape[d], gone ? FactorKind::kReduction : FactorKind::kPassThrough));
    if (!gone) out.push_back(in.back());
  }
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

// Writes a reduce whose body is the binary op `mnemonic`, from the initial value `initial`.
template <const char* mnemonic, HostArray (*initial)(DType)>
void emit_reduce(const OpCall& call, OpEmission& out) {
  TensorType scalar{call.operand(0).dtype, {}};
  stablehlo::Value start = out.writer.temporary();
  out.writer.constant(start, initial(scalar.dtype));
  stablehlo::OpWriter op = out.writer.op("stablehlo.reduce", out.results,
                                         {out.operands[0], {start, scalar}}, out.location);
  op.i64_array("dimensions", call.as<ReductionAttributes>().dimensions);
  write_reducer(op, out, mnemonic, scalar.dtype).done();
}

// Broadcasts a tensor of the result's shape back over the reduced dimensions.
Tensor stretch(const Tensor& x, const VjpCall& call) {
  const Shape& shape = call.operands[0].shape();
  return broadcast_in_dim(x, shape, kept(reduced(call), shape.rank()));
}

// Divides the cotangent equally among the elements equal to the largest (smallest).
void extreme_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& x = call.operands[0];
  Tensor chosen = astype(equal(x, stretch(call.results[0], call)), x.dtype());
  Tensor share = divide(call.cotangents[0], sum(chosen, reduced(call)));
  out[0] = multiply(chosen, stretch(share, call));
}

// The product of all elements before (after) each one along the last dimension, by doubling:
// log2(size) products of the whole tensor and no division, so that all derivatives are correct with
// zeros.
Tensor products_beside(const Tensor& x, bool before) {
  auto shifted = [&](const Tensor& t, std::int64_t by) {
    return pad_along(t, 1, -1, before ? by : -by, before ? -by : by);
  };
  Tensor products = shifted(x, 1);
  for (std::int64_t reach = 1; reach + 1 < x.shape()[-1]; reach *= 2)
    products = multiply(products, shifted(products, reach));
  return products;
}

void prod_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Shape& shape = call.operands[0].shape();
  // Merges the reduced dimensions into one, the last.
  Dimensions order = kept(reduced(call), shape.rank()), sizes;
  for (std::int64_t d : order) sizes.push_back(shape[d]);
  std::int64_t together = 1;
  for (std::int64_t d : reduced(call)) {
    order.push_back(d);
    together *= shape[d];
  }
  sizes.push_back(together);
  Tensor lined_up = permute_dims(call.operands[0], order);
  const Shape& permuted = lined_up.shape();
  Tensor x = reshape(lined_up, sizes);
  Tensor others = reshape(multiply(products_beside(x, true), products_beside(x, false)), permuted);
  out[0] = multiply(stretch(call.cotangents[0], call), permute_dims(others, inverse_of(order)));
}

Tensor reduce(const OpDef& op, const In& x, const DimensionList& list, bool keepdims,
              bool accumulate_in_f32) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(op, x);
  DType dtype = operand.dtype();
  Dimensions dimensions = list.resolve(operand.shape().rank(), op.name, effective_source(x.where));
  Dimensions sizes = operand.shape().sizes();
  for (std::int64_t d : dimensions) sizes[static_cast<std::size_t>(d)] = 1;
  if (dimensions.empty()) return operand;
  bool narrow =
      is_float8(dtype) || (accumulate_in_f32 && (dtype == DType::f16 || dtype == DType::bf16));
  if (narrow) operand = astype(operand, DType::f32);
  Tensor result =
      record(op, make_attributes(ReductionAttributes{std::move(dimensions)}), {&operand}, x.where);
  if (narrow) result = astype(result, dtype);
  return keepdims ? reshape(result, std::move(sizes)) : result;
}

// Records sum or prod in the dtype of the result; bools are counted as 0 and 1.
Tensor add_up(const OpDef& op, const In& x, const DimensionList& dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(op, x);
  operand = astype(operand, sum_dtype(operand.dtype()));
  return reduce(op, In(operand, x.where), dimensions, keepdims, true);
}

Tensor reduce_bools(const OpDef& op, const In& x, const DimensionList& dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = astype(operand_tensor(op, x), DType::bool_);
  return reduce(op, In(operand, x.where), dimensions, keepdims, false);
}

std::unique_ptr<const Attributes> read_reduce(const OpText& text) {
  Dimensions dimensions = text.list({"dimensions"});
  std::sort(dimensions.begin(), dimensions.end());
  return make_attributes(ReductionAttributes{std::move(dimensions)});
}

// The definition of a reduction: `op`, and what all of them have in common.
constexpr OpDef reduction(OpDef op) {
  op.operands = "x";
  op.sharding_rule = reduction_rule;
  op.batch = batch_along_all<ReductionAttributes, &ReductionAttributes::dimensions>;
  op.parse_attributes = parse_attributes<ReductionAttributes>;
  return op;
}

}  // namespace

extern constinit const OpDef sum_op = reduction({
    .name = "sum",
    .doc = "The sum of the elements along dimensions.",
    .example = "sum(x, 0)",
    .infer = infer_number,
    .emit = emit_reduce<kAdd, scalar_of<0>>,
    .read = {.mnemonic = "stablehlo.reduce", .attributes = read_reduce, .own_operands = 1},
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = stretch(call.cotangents[0], call); },
});
extern constinit const OpDef prod_op = reduction({
    .name = "prod",
    .doc = "The product of the elements along dimensions.",
    .example = "prod(x, 0)",
    .infer = infer_number,
    .emit = emit_reduce<kMultiply, scalar_of<1>>,
    .vjp = prod_vjp,
});
extern constinit const OpDef max_op = reduction({
    .name = "max",
    .doc = "The largest element along dimensions.",
    .example = "max(x, 0)",
    .infer = infer_extreme,
    .emit = emit_keeping_nans<NanEnd::kGreatest, emit_reduce<kMaximum, lowest_of>>,
    .vjp = extreme_vjp,
});
extern constinit const OpDef max_of_numbers_op = reduction({
    .name = "max_of_numbers",
    .doc = "The largest element along dimensions if none is NaN; otherwise any element.",
    .example = "max_of_numbers(x, 0)",
    .infer = infer_extreme,
    .emit = emit_reduce<kMaximum, lowest_of>,
    .vjp = extreme_vjp,
});
extern constinit const OpDef min_op = reduction({
    .name = "min",
    .doc = "The smallest element along dimensions.",
    .example = "min(x, 0)",
    .infer = infer_extreme,
    .emit = emit_keeping_nans<NanEnd::kLeast, emit_reduce<kMinimum, highest_of>>,
    .vjp = extreme_vjp,
});
extern constinit const OpDef any_op = reduction({
    .name = "any",
    .doc = "True if any element along dimensions is true.",
    .example = "any(x, 0)",
    .infer = infer_bool,
    .emit = emit_reduce<kOr, scalar_of<0>>,
    .vjp = kNotDifferentiable,
});
extern constinit const OpDef all_op = reduction({
    .name = "all",
    .doc = "True if all elements along dimensions are true.",
    .example = "all(x, 0)",
    .infer = infer_bool,
    .emit = emit_reduce<kAnd, scalar_of<1>>,
    .vjp = kNotDifferentiable,
});

Tensor sum(In x, DimensionList dimensions, bool keepdims) {
  return add_up(sum_op, x, dimensions, keepdims);
}
Tensor prod(In x, DimensionList dimensions, bool keepdims) {
  return add_up(prod_op, x, dimensions, keepdims);
}
Tensor max(In x, DimensionList dimensions, bool keepdims) {
  return reduce(max_op, x, dimensions, keepdims, false);
}
Tensor max_of_numbers(In x, DimensionList dimensions, bool keepdims) {
  return reduce(max_of_numbers_op, x, dimensions, keepdims, false);
}
Tensor min(In x, DimensionList dimensions, bool keepdims) {
  return reduce(min_op, x, dimensions, keepdims, false);
}
Tensor any(In x, DimensionList dimensions, bool keepdims) {
  return reduce_bools(any_op, x, dimensions, keepdims);
}
Tensor all(In x, DimensionList dimensions, bool keepdims) {
  return reduce_bools(all_op, x, dimensions, keepdims);
}

}  // namespace meshard
