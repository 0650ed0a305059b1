#include "meshard/ops/reduction.h"

#include <algorithm>

#include "meshard/ops/astype.h"
#include "meshard/ops/broadcast_in_dim.h"
#include "meshard/ops/emission.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reshape.h"

namespace meshard {
namespace {

const Dimensions& reduced(const VjpCall& call) { return call.as<ReductionAttributes>().dimensions; }

bool is_reduced(const Dimensions& dimensions, std::int64_t d) {
  return std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
}

// The dimensions of a tensor of `rank` that are not reduced.
Dimensions kept(const Dimensions& dimensions, int rank) {
  Dimensions out;
  for (int d = 0; d < rank; ++d)
    if (!is_reduced(dimensions, d)) out.push_back(d);
  return out;
}

void infer(const OpCall& call, ResultTypes& results) {
  const Dimensions& dimensions = call.as<ReductionAttributes>().dimensions;
  const TensorType& operand = call.operand(0);
  if (is_float8(operand.dtype)) call.fail("8-bit floats are reduced in f32, not as ", operand);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] < 0 || dimensions[i] >= operand.rank())
      call.fail("dimension ", dimensions[i], " is outside 0..", operand.rank() - 1, " of ",
                operand);
    if (i > 0 && dimensions[i] <= dimensions[i - 1])
      call.fail("dimensions [", join(dimensions, ", "), "] are not ascending");
  }
  Dimensions sizes;
  for (std::int64_t d : kept(dimensions, operand.rank())) sizes.push_back(operand.shape[d]);
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

void infer_number(const OpCall& call, ResultTypes& results) {
  if (call.operand(0).dtype == DType::bool_)
    call.fail("takes integers or floats, not ", call.operand(0));
  infer(call, results);
}

ShardingRule rule(const OpCall& call) {
  const Dimensions& dimensions = call.as<ReductionAttributes>().dimensions;
  const Shape& shape = call.operand(0).shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (int d = 0; d < shape.rank(); ++d) {
    bool gone = is_reduced(dimensions, d);
    in.push_back(
        builder.factor(shape[d], gone ? FactorKind::kReduction : FactorKind::kPassThrough));
    if (!gone) out.push_back(in.back());
  }
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

// Writes a reduce whose body is the binary op `mnemonic`, from the initial value `initial`.
void emit(const OpCall& call, OpEmission& out, std::string_view mnemonic,
          const HostArray& initial) {
  stablehlo::Value start = out.writer.temporary();
  out.writer.constant(start, initial);
  TensorType scalar{call.operand(0).dtype, {}};
  stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
  out.writer.op("stablehlo.reduce", out.results, {out.operands[0], {start, scalar}}, out.location)
      .i64_array("dimensions", call.as<ReductionAttributes>().dimensions)
      .region({{a, scalar}, {b, scalar}},
              [&] {
                stablehlo::Value both = out.writer.temporary();
                out.writer.elementwise(mnemonic, both, {a, b}, scalar);
                out.writer.terminate({{both, scalar}});
              })
      .done();
}

// Stretches a tensor of the result's shape back over the reduced dimensions.
Tensor stretch(const Tensor& x, const VjpCall& call) {
  const Shape& shape = call.operands[0].shape();
  return broadcast_in_dim(x, shape, kept(reduced(call), shape.rank()));
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

template <class Op>
auto over(Op op, DimensionList dimensions, bool keepdims = false) {
  return [=](std::span<const Tensor> x) { return op(x[0], dimensions, keepdims); };
}

std::vector<OpSample> number_samples(SampleSource& source, Tensor (*op)(In, DimensionList, bool)) {
  return {
      {"all of a vector", {source.distinct(DType::f64, {8})}, over(op, {})},
      {"rows", {source.distinct(DType::f64, {4, 8})}, over(op, 1)},
      {"columns, kept", {source.distinct(DType::f64, {4, 8})}, over(op, {0}, true)},
      {"outer two", {source.distinct(DType::f32, {4, 8, 4})}, over(op, {0, 2})},
      {"middle", {source.distinct(DType::f64, {4, 4, 8})}, over(op, 1)},
      {"f16", {source.uniform(DType::f16, {4, 8})}, over(op, -1), false},
      {"bf16", {source.uniform(DType::bf16, {8, 4})}, over(op, -1), false},
      {"i32", {source.uniform(DType::i32, {4, 8}, -3, 3)}, over(op, 0)},
      {"u8", {source.uniform(DType::u8, {4, 8}, 0, 9)}, over(op, 0)},
  };
}

}  // namespace

extern constinit const OpDef sum_op = {
    .name = "sum",
    .operands = "x",
    .doc = "The sum of the elements along dimensions.",
    .example = "sum(x, 0)",
    .infer = infer_number,
    .sharding_rule = rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          emit(call, out, "stablehlo.add", HostArray::zeros({call.operand(0).dtype, {}}));
        },
    .vjp = [](const VjpCall& call,
              std::span<Tensor> out) { out[0] = stretch(call.cotangents[0], call); },
    .samples =
        [](SampleSource& source) {
          auto samples = number_samples(source, sum);
          samples.push_back({"bools", {source.uniform(DType::bool_, {8, 4})}, over(sum, 0)});
          samples.push_back({"nothing", {source.uniform(DType::f32, {4, 0})}, over(sum, 1)});
          return samples;
        },
    .parse_attributes = parse_attributes<ReductionAttributes>,
};

Tensor sum(In x, DimensionList dimensions, bool keepdims) {
  if (x.tensor && x.tensor->defined() && x.tensor->dtype() == DType::bool_) {
    SourceScope line(x.where);
    return reduce(sum_op, In(astype(x, kDefaultInteger), x.where), dimensions, keepdims, true);
  }
  return reduce(sum_op, x, dimensions, keepdims, true);
}

}  // namespace meshard
