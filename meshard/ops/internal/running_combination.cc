// Tested in meshard/ops/cumulative_test.cc.
#include "meshard/ops/internal/running_combination.h"

#include "meshard/ops/add.h"
#include "meshard/ops/concat.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/definition/pad_emission.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/pad.h"

namespace meshard::internal {

void infer_cumulative(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_) call.fail("takes integers or floats, not ", operand);
  check_dimension(call, "dimension", call.as<CumulativeAttributes>().dimension);
  results.push_back(operand);
}

ShardingRule cumulative_rule(const OpCall& call) {
  ShardingRuleBuilder builder;
  InlineVector<int, 6> factors =
      factors_with_whole(builder, call.operand(0).shape, call.as<CumulativeAttributes>().dimension);
  return builder.operand(one_factor_each(factors)).result(one_factor_each(factors)).build();
}

// Doubling (Hillis and Steele 1986): after the step by n, each element combines the last 2n
// elements. A reduce_window would take quadratic time on some backends.
void emit_cumulative(const OpCall& call, OpEmission& out, const HostArray& identity,
                     WriteCombination combine) {
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
  out.writer.constant(start, identity);
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

Tensor moved_on(const Tensor& x, const CumulativeAttributes& along, std::int64_t steps,
                double fill) {
  Dimensions low(static_cast<std::size_t>(x.rank()), 0), high = low;
  auto d = static_cast<std::size_t>(along.dimension);
  low[d] = along.reverse ? -steps : steps;
  high[d] = -low[d];
  return pad(x, element_wise::literal(fill, x), std::move(low), std::move(high));
}

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

Tensor record_cumulative(const OpDef& op, const Tensor& x, std::int64_t dimension, bool reverse,
                         SourceLocation where) {
  dimension = normalize_dimension(dimension, x.shape().rank(), op.name, effective_source(where));
  return record(op, make_attributes(CumulativeAttributes{dimension, reverse}), {&x}, where);
}

Tensor with_initial(const Tensor& running, std::int64_t dimension, bool reverse, double initial) {
  if (dimension < 0) dimension += running.rank();  // already checked when it was recorded
  Dimensions sizes = running.shape().sizes();
  sizes[static_cast<std::size_t>(dimension)] = 1;
  Tensor first = filled({running.dtype(), Shape(sizes)}, initial);
  return reverse ? concat({running, first}, dimension) : concat({first, running}, dimension);
}

std::vector<OpSample> cumulative_samples(SampleSource& source,
                                         Tensor (*op)(In, std::int64_t, bool)) {
  auto along = [op](std::int64_t dimension, bool reverse = false) {
    return [=](std::span<const Tensor> x) { return op(x[0], dimension, reverse); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.distinct(f64, {8})}, along(0)},
      {"rows", {source.distinct(f64, {4, 8})}, along(-1)},
      {"rows, reversed", {source.distinct(f64, {4, 8})}, along(1, true)},
      {"columns, uneven", {source.distinct(f64, {7, 4})}, along(0)},
      {"middle", {source.uniform(f32, {4, 5, 8})}, along(1)},
      {"one", {source.uniform(f64, {1, 4})}, along(0)},
      {"empty", {source.uniform(f32, {4, 0})}, along(1)},
      {"integers", {source.uniform(DType::i32, {4, 8}, -3, 3)}, along(1)},
  };
}

}  // namespace meshard::internal
