#include "meshard/ops/cumulative.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
using namespace internal;
namespace {

// Writes the combination of two tensors of one type, the second closer to the end, as `result`.
using WriteCombination = void (*)(OpEmission& out, const TensorType& type, stablehlo::Value result,
                                  stablehlo::Value a, stablehlo::Value b);
using SsaOf = stablehlo::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Result type = operand type. @error bools; the dimension is out of range.
void infer_cumulative(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_) call.fail("takes integers or floats, not ", operand);
  check_dimension(call, "dimension", call.as<CumulativeAttributes>().dimension);
  results.push_back(operand);
}

// Writes the running combination. `identity` gives the identity element of the combination.
// Doubling (Hillis and Steele 1986): after the step by n, each element combines the last 2n
// elements. A reduce_window would take quadratic time on some backends.
template <WriteCombination combine, HostArray (*identity)(DType)>
void emit_cumulative(const OpCall& call, OpEmission& out) {
  const CumulativeAttributes& along = call.as<CumulativeAttributes>();
  auto dimension = static_cast<std::size_t>(along.dimension);
  const TensorType& type = call.operand(0);
  std::int64_t size = type.shape[static_cast<int>(dimension)];
  if (size <= 1) {  // nothing to combine, but the result still needs its name
    out.op("stablehlo.reshape").done();
    return;
  }
  stablehlo::Value running = out.operands[0].value, start = out.writer.temporary();
  Dimensions unpadded(static_cast<std::size_t>(type.rank()), 0), low = unpadded, high = unpadded;
  TensorType scalar{type.dtype, {}};
  out.writer.constant(start, identity(type.dtype));
  for (std::int64_t step = 1; step < size; step *= 2) {
    low[dimension] = along.reverse ? -step : step;
    high[dimension] = -low[dimension];
    stablehlo::Value moved = out.writer.temporary();
    emit_pad(out, {moved, type}, {running, type}, {start, scalar}, low, high, unpadded);
    bool last = 2 * step >= size;
    stablehlo::Value next = last ? out.results[0].value : out.writer.temporary();
    combine(out, type, next, moved, running);
    running = next;
  }
}

// `x` shifted by `steps` along the direction of a cumulative op: each element moves `steps` later.
// `fill` is shifted in.
Tensor moved_on(const Tensor& x, const CumulativeAttributes& along, std::int64_t steps,
                double fill) {
  std::int64_t before = along.reverse ? -steps : steps;
  return pad_along(x, element_wise::literal(fill, x), along.dimension, before, -before);
}

// The total cotangents of running values y[k], each computed from its predecessor: c[k] + w[k+1] *
// (c[k+1] + w[k+2] * ...), where w[k] = dy[k] / dy[k-1].
// By doubling: after the step by n, each element has the contributions of the 2n elements from it
// on.
Tensor carried_back(const Tensor& cotangents, const Tensor& slopes,
                    const CumulativeAttributes& along) {
  std::int64_t size = cotangents.shape()[static_cast<int>(along.dimension)];
  Tensor carried = cotangents, weight = moved_on(slopes, along, -1, 0);
  for (std::int64_t step = 1; step < size; step *= 2) {
    carried = add(carried, multiply(weight, moved_on(carried, along, -step, 0)));
    if (2 * step < size) weight = multiply(weight, moved_on(weight, along, -step, 0));
  }
  return carried;
}

// Records a cumulative op.
Tensor record_cumulative(const OpDef& op, const Tensor& x, std::int64_t dimension, bool reverse,
                         SourceLocation where) {
  dimension = normalize_dimension(dimension, x.shape().rank(), op.name, effective_source(where));
  return record(op, make_attributes(CumulativeAttributes{dimension, reverse}), {&x}, where);
}

// The result of a cumulative op with its initial value added, at the front or (reverse) at the
// end.
Tensor with_initial(const Tensor& running, std::int64_t dimension, bool reverse, double initial) {
  if (dimension < 0) dimension += running.rank();  // already checked when it was recorded
  Dimensions sizes = running.shape().sizes();
  sizes[static_cast<std::size_t>(dimension)] = 1;
  Tensor first = filled({running.dtype(), Shape(sizes)}, initial);
  return reverse ? concat({running, first}, dimension) : concat({first, running}, dimension);
}

// log(exp(a) + exp(b)): the larger one + log1p(exp(-|a - b|)). Where a - b is NaN (two equal
// infinities, NaN), their sum.
void write_logaddexp(OpEmission& out, const TensorType& type, SsaOf result, SsaOf a, SsaOf b) {
  ElementWriter w(type, out);
  stablehlo::Typed x(a, type), y(b, type);
  stablehlo::Typed difference = w.binary("stablehlo.subtract", x, y);
  stablehlo::Typed distance = w.unary("stablehlo.abs", difference);
  stablehlo::Typed near = w.unary("stablehlo.exponential", w.unary("stablehlo.negate", distance));
  stablehlo::Typed larger = w.binary(kMaximum, x, y);
  stablehlo::Typed sum = w.binary(kAdd, larger, w.unary("stablehlo.log_plus_one", near));
  stablehlo::Typed both = w.binary(kAdd, x, y);
  stablehlo::Typed undefined = w.compare("NE", difference, difference);
  out.writer.op("stablehlo.select", {{result, type}}, {undefined, both, sum}, out.location).done();
}

template <const char* mnemonic>
void write_plain(OpEmission& out, const TensorType& type, SsaOf result, SsaOf a, SsaOf b) {
  out.writer.elementwise(mnemonic, result, {a, b}, type, out.location);
}

// The vjp of a recurrence y[k] = f(y[k-1], x[k]): `slope` is its derivative by y[k-1], `local` by
// x[k].
void pass_back(const VjpCall& call, std::span<Tensor> out, const Tensor& slope,
               const Tensor& local) {
  out[0] =
      multiply(local, carried_back(call.cotangents[0], slope, call.as<CumulativeAttributes>()));
}

// The running value before each element.
Tensor before(const VjpCall& call, double fill) {
  return moved_on(call.results[0], call.as<CumulativeAttributes>(), 1, fill);
}

void sum_along_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [dimension, reverse] = call.as<CumulativeAttributes>();
  out[0] = cumulative_sum(call.cotangents[0], dimension, !reverse);
}

void prod_along_vjp(const VjpCall& call, std::span<Tensor> out) {
  pass_back(call, out, call.operands[0], before(call, 1));
}

void extreme_along_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor &x = call.operands[0], &y = call.results[0];
  // NaN compares unequal: with NaN before it, the first element receives its whole cotangent, and
  // where the result is NaN nothing is passed back, as in maximum.
  Tensor last = before(call, std::numeric_limits<double>::quiet_NaN());
  Tensor one = element_wise::literal(1, x), half = element_wise::literal(0.5, x);
  Tensor is_last = equal(last, y), is_new = equal(x, y);
  pass_back(call, out, where(is_last, where(is_new, half, one), 0),
            where(is_new, where(is_last, half, one), 0));
}

void logsumexp_along_vjp(const VjpCall& call, std::span<Tensor> out) {
  const Tensor& y = call.results[0];
  // The difference of equal infinities would be NaN.
  auto share = [&](const Tensor& part) { return exp(where(equal(part, y), 0, subtract(part, y))); };
  pass_back(call, out, share(before(call, -kInfinity)), share(call.operands[0]));
}

template <WriteCombination combine, HostArray (*identity)(DType)>
constexpr OpDef cumulative(std::string_view name, std::string_view doc, std::string_view example,
                           void (*vjp)(const VjpCall&, std::span<Tensor>),
                           void (*infer)(const OpCall&, ResultTypes&) = infer_cumulative) {
  return {
      .name = name,
      .operands = "x",
      .doc = doc,
      .example = example,
      .infer = infer,
      .sharding_rule = along_rule<CumulativeAttributes, &CumulativeAttributes::dimension>,
      .emit = emit_cumulative<combine, identity>,
      .vjp = vjp,
      .batch = batch_along<CumulativeAttributes, &CumulativeAttributes::dimension>,
      .parse_attributes = parse_attributes<CumulativeAttributes>,
  };
}

void infer_float_along(const OpCall& call, ResultTypes& results) {
  if (!is_floating(call.operand(0).dtype)) call.fail("takes floats, not ", call.operand(0));
  infer_cumulative(call, results);
}

}  // namespace

extern constinit const OpDef cumulative_sum_op = cumulative<write_plain<kAdd>, scalar_of<0>>(
    "cumulative_sum", {}, "cumulative_sum(x, 1)", sum_along_vjp);
extern constinit const OpDef cumulative_prod_op = cumulative<write_plain<kMultiply>, scalar_of<1>>(
    "cumulative_prod", "The cumulative products of the elements along a dimension.",
    "cumulative_prod(x, 1)", prod_along_vjp);
extern constinit const OpDef cumulative_max_op = cumulative<write_plain<kMaximum>, lowest_of>(
    "cumulative_max", "The cumulative maxima of the elements along a dimension.",
    "cumulative_max(x, 1)", extreme_along_vjp);
extern constinit const OpDef cumulative_min_op = cumulative<write_plain<kMinimum>, highest_of>(
    "cumulative_min", "The cumulative minima of the elements along a dimension.",
    "cumulative_min(x, 1)", extreme_along_vjp);
extern constinit const OpDef cumulative_logsumexp_op = cumulative<write_logaddexp, lowest_of>(
    "cumulative_logsumexp",
    "The cumulative logarithms of sums of exponentials of the elements along a dimension.",
    "cumulative_logsumexp(x, 1)", logsumexp_along_vjp, infer_float_along);

Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(cumulative_sum_op, x);
  operand = astype(operand, sum_dtype(operand.dtype()));
  return record_cumulative(cumulative_sum_op, operand, dimension, reverse, x.where);
}

Tensor cumulative_sum(In x, std::int64_t dimension, bool reverse, bool include_initial) {
  SourceScope line(x.where);
  Tensor sums = cumulative_sum(x, dimension, reverse);
  return include_initial ? with_initial(sums, dimension, reverse, 0) : sums;
}

Tensor cumulative_prod(In x, std::int64_t dimension, bool reverse) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(cumulative_prod_op, x);
  operand = astype(operand, sum_dtype(operand.dtype()));
  return record_cumulative(cumulative_prod_op, operand, dimension, reverse, x.where);
}
Tensor cumulative_prod(In x, std::int64_t dimension, bool reverse, bool include_initial) {
  SourceScope line(x.where);
  Tensor products = cumulative_prod(x, dimension, reverse);
  return include_initial ? with_initial(products, dimension, reverse, 1) : products;
}
Tensor cumulative_max(In x, std::int64_t dimension, bool reverse) {
  return record_cumulative(cumulative_max_op, operand_tensor(cumulative_max_op, x), dimension,
                           reverse, x.where);
}
Tensor cumulative_min(In x, std::int64_t dimension, bool reverse) {
  return record_cumulative(cumulative_min_op, operand_tensor(cumulative_min_op, x), dimension,
                           reverse, x.where);
}
Tensor cumulative_logsumexp(In x, std::int64_t dimension, bool reverse) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(cumulative_logsumexp_op, x);
  if (is_complex(operand.dtype()))
    return record_cumulative(cumulative_logsumexp_op, operand, dimension, reverse, x.where);
  // Narrow floats are computed in f32: derivatives are exponentials of differences to the result.
  Tensor running = record_cumulative(cumulative_logsumexp_op, for_computation(operand), dimension,
                                     reverse, x.where);
  return astype(running, float_result_dtype(operand.dtype()));
}

Tensor diff(In x, std::int64_t dimension, std::int64_t n, Tensor prepend, Tensor append) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor result = operand_tensor("diff", x);
  int along = normalize_dimension(dimension, result.shape().rank(), "diff", where);
  if (n < 0) throw_invalid(where, "[diff] n = ", n, " is negative");
  std::vector<Tensor> parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(result);
  if (append.defined()) parts.push_back(append);
  if (parts.size() > 1) result = concat(parts, along, where);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t size = result.shape()[along];
    Tensor later = slice_along(result, along, std::min<std::int64_t>(1, size), size);
    Tensor earlier = slice_along(result, along, 0, std::max<std::int64_t>(0, size - 1));
    result = result.dtype() == DType::bool_ ? not_equal(later, earlier) : subtract(later, earlier);
  }
  return result;
}

}  // namespace meshard
