#include "meshard/ops/cumulative.h"

#include <limits>

#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/internal/running_combination.h"
#include "meshard/ops/internal/sum_dtype.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

using SsaOf = stablehlo::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A scalar of the dtype's highest (lowest) value: an infinity for floats.
HostArray end_of(DType dtype, bool highest) {
  if (is_floating(dtype)) return HostArray::full({dtype, {}}, highest ? kInfinity : -kInfinity);
  return visit_dtype(dtype, [highest]<class T>() {
    if constexpr (std::is_integral_v<T>)
      return HostArray::scalar<T>(highest ? std::numeric_limits<T>::max()
                                          : std::numeric_limits<T>::min());
    return HostArray();
  });
}

// log(exp(a) + exp(b)): the larger one + log1p(exp(-|a - b|)). Where a - b is NaN (two equal
// infinities, NaN), their sum.
void write_logaddexp(OpEmission& out, const TensorType& type, SsaOf result, SsaOf a, SsaOf b) {
  stablehlo::ModuleWriter& w = out.writer;
  auto plain = [&](std::string_view mnemonic, std::initializer_list<SsaOf> operands) {
    SsaOf made = w.temporary();
    w.elementwise(mnemonic, made, operands, type, out.location);
    return made;
  };
  SsaOf difference = plain("stablehlo.subtract", {a, b});
  SsaOf near = plain("stablehlo.exponential",
                     {plain("stablehlo.negate", {plain("stablehlo.abs", {difference})})});
  SsaOf sum = plain("stablehlo.add",
                    {plain("stablehlo.maximum", {a, b}), plain("stablehlo.log_plus_one", {near})});
  SsaOf both = plain("stablehlo.add", {a, b});
  TensorType bools{DType::bool_, type.shape};
  SsaOf undefined = w.temporary();
  w.op("stablehlo.compare", {{undefined, bools}}, {{difference, type}, {difference, type}},
       out.location)
      .enumeration("comparison_direction", "comparison_direction", "NE")
      .done();
  w.op("stablehlo.select", {{result, type}}, {{undefined, bools}, {both, type}, {sum, type}},
       out.location)
      .done();
}

constexpr char kMultiply[] = "stablehlo.multiply", kMaximum[] = "stablehlo.maximum",
               kMinimum[] = "stablehlo.minimum";

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

using Cumulative = Tensor (*)(In, std::int64_t, bool);

template <Cumulative op>
constexpr OpDef cumulative(std::string_view name, std::string_view doc, std::string_view example,
                           void (*emit)(const OpCall&, OpEmission&),
                           void (*vjp)(const VjpCall&, std::span<Tensor>),
                           void (*infer)(const OpCall&, ResultTypes&) = infer_cumulative) {
  return {
      .name = name,
      .operands = "x",
      .doc = doc,
      .example = example,
      .infer = infer,
      .sharding_rule = cumulative_rule,
      .emit = emit,
      .vjp = vjp,
      .batch = batch_along<CumulativeAttributes, &CumulativeAttributes::dimension>,
      .samples = [](SampleSource& source) { return cumulative_samples(source, op); },
      .parse_attributes = parse_attributes<CumulativeAttributes>,
  };
}

void infer_float_along(const OpCall& call, ResultTypes& results) {
  if (!is_floating(call.operand(0).dtype)) call.fail("takes floats, not ", call.operand(0));
  infer_cumulative(call, results);
}

}  // namespace

extern constinit const OpDef cumulative_prod_op = cumulative<cumulative_prod>(
    "cumulative_prod", "The cumulative products of the elements along a dimension.",
    "cumulative_prod(x, 1)",
    [](const OpCall& call, OpEmission& out) {
      emit_cumulative(call, out, HostArray::full({call.operand(0).dtype, {}}, 1),
                      write_plain<kMultiply>);
    },
    prod_along_vjp);
extern constinit const OpDef cumulative_max_op = cumulative<cumulative_max>(
    "cumulative_max", "The cumulative maxima of the elements along a dimension.",
    "cumulative_max(x, 1)",
    [](const OpCall& call, OpEmission& out) {
      emit_cumulative(call, out, end_of(call.operand(0).dtype, false), write_plain<kMaximum>);
    },
    extreme_along_vjp);
extern constinit const OpDef cumulative_min_op = cumulative<cumulative_min>(
    "cumulative_min", "The cumulative minima of the elements along a dimension.",
    "cumulative_min(x, 1)",
    [](const OpCall& call, OpEmission& out) {
      emit_cumulative(call, out, end_of(call.operand(0).dtype, true), write_plain<kMinimum>);
    },
    extreme_along_vjp);
extern constinit const OpDef cumulative_logsumexp_op = cumulative<cumulative_logsumexp>(
    "cumulative_logsumexp",
    "The cumulative logarithms of sums of exponentials of the elements along a dimension.",
    "cumulative_logsumexp(x, 1)",
    [](const OpCall& call, OpEmission& out) {
      emit_cumulative(call, out, end_of(call.operand(0).dtype, false), write_logaddexp);
    },
    logsumexp_along_vjp, infer_float_along);

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

}  // namespace meshard
