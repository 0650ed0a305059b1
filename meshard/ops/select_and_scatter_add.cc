#include "meshard/ops/select_and_scatter_add.h"

#include <limits>

#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/internal/window.h"
#include "meshard/ops/internal/window_elements.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

Windows scatter_windows(const SelectAndScatterAddAttributes& a) {
  Dimensions ones(a.window.size(), 1);
  return {.size = a.window,
          .stride = a.strides,
          .low = a.low,
          .high = a.high,
          .dilation = ones,
          .base_dilation = ones};
}

void infer_select_and_scatter(const OpCall& call, ResultTypes& results) {
  const TensorType &x = call.operand(0), &source = call.operand(1);
  if (x.dtype == DType::bool_ || is_complex(x.dtype) || is_float8(x.dtype))
    call.fail("takes integers and floats of 16 bits or more, not ", x);
  if (source.dtype != x.dtype) call.fail("operand dtypes differ: ", x, " and ", source);
  Windows windows = scatter_windows(call.as<SelectAndScatterAddAttributes>());
  check_windows(call, windows, x.shape.sizes());
  if (source.rank() != x.rank()) call.fail("operand ranks differ: ", x, " and ", source);
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    std::int64_t count = windows.count(d, x.shape.sizes()[d]);
    if (source.shape.sizes()[d] != count)
      call.fail("dimension ", d, " of ", x, " has ", count, " windows, but the source ", source,
                " has size ", source.shape.sizes()[d]);
  }
  results.push_back(x);
}

ShardingRule select_and_scatter_rule(const OpCall& call) {
  Windows windows = scatter_windows(call.as<SelectAndScatterAddAttributes>());
  const Dimensions &base = call.operand(0).shape.sizes(), &count = call.operand(1).shape.sizes();
  ShardingRuleBuilder builder;
  TensorFactors in, source;
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    WindowFactors factors = window_factors(builder, windows, d, base[d], count[d]);
    in.push_back(factors.base);
    source.push_back(factors.result);
  }
  TensorFactors result = in;
  return builder.operand(std::move(in))
      .operand(std::move(source))
      .result(std::move(result))
      .build();
}

void emit_select_and_scatter(const OpCall& call, OpEmission& out) {
  const auto& attributes = call.as<SelectAndScatterAddAttributes>();
  TensorType scalar{call.operand(0).dtype, {}}, truth{DType::bool_, {}};
  stablehlo::Value zero = out.writer.scalar(scalar.dtype, 0);
  stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
  stablehlo::Value c = out.writer.block_argument(), d = out.writer.block_argument();
  out.writer
      .op("stablehlo.select_and_scatter", out.results,
          {out.operands[0], out.operands[1], {zero, scalar}}, out.location)
      .i64_array("window_dimensions", attributes.window)
      .i64_array("window_strides", attributes.strides)
      .dense("padding", padding_array(scatter_windows(attributes)))
      .region({{a, scalar}, {b, scalar}},
              [&] {
                stablehlo::Value keep = out.writer.temporary();
                out.writer.op("stablehlo.compare", {{keep, truth}}, {{a, scalar}, {b, scalar}})
                    .enumeration("comparison_direction", "comparison_direction",
                                 attributes.select == WindowSelect::kGreatest ? "GE" : "LE")
                    .done();
                out.writer.terminate({{keep, truth}});
              })
      .region({{c, scalar}, {d, scalar}},
              [&] {
                stablehlo::Value both = out.writer.temporary();
                out.writer.elementwise("stablehlo.add", both, {c, d}, scalar);
                out.writer.terminate({{both, scalar}});
              })
      .done();
}

// The op is linear in the source: each element receives the cotangent from the position to which it
// was added. These positions are piecewise constant in x.
void select_and_scatter_vjp(const VjpCall& call, std::span<Tensor> out) {
  if (!call.needs(1)) return;
  const auto& attributes = call.as<SelectAndScatterAddAttributes>();
  Windows windows = scatter_windows(attributes);
  bool greatest = attributes.select == WindowSelect::kGreatest;
  double infinity = std::numeric_limits<double>::infinity();
  const Dimensions& counts = call.operands[1].shape().sizes();
  Tensor padded = padded_for_windows(call.operands[0], greatest ? -infinity : infinity, windows);
  Tensor chosen =
      chosen_places(window_elements(padded, windows, counts),
                    window_members(call.operands[0].shape(), windows, counts), greatest);
  std::vector<Tensor> cotangents =
      window_elements(padded_for_windows(call.cotangents[0], 0, windows), windows, counts);
  out[1] = cotangents[0];
  for (std::size_t k = 1; k < cotangents.size(); ++k)
    out[1] = where(equal(chosen, static_cast<std::int64_t>(k)), cotangents[k], out[1]);
}

void batch_select_and_scatter(const BatchCall& call, std::span<Tensor> results) {
  const auto& a = call.as<SelectAndScatterAddAttributes>();
  SelectAndScatterAddAttributes batched{a.select, with_entry(1, a.window), with_entry(1, a.strides),
                                        with_entry(0, a.low), with_entry(0, a.high)};
  record_batched(call, make_attributes(std::move(batched)), batched_operands(call), results);
}

std::vector<OpSample> select_and_scatter_samples(SampleSource& source) {
  auto by = [](SelectAndScatterAddAttributes windows) {
    return [=](std::span<const Tensor> x) { return select_and_scatter_add(x[0], x[1], windows); };
  };
  DType f64 = DType::f64, f32 = DType::f32;
  using enum WindowSelect;
  return {
      {"pooling",
       {source.distinct(f64, {4, 8}), source.uniform(f64, {4, 4})},
       by({kGreatest, {1, 2}, {1, 2}, {0, 0}, {0, 0}})},
      {"least, overlapping",
       {source.distinct(f64, {8, 4}), source.uniform(f64, {4, 4})},
       by({kLeast, {3, 1}, {2, 1}, {1, 0}, {0, 0}})},
      {"padded",
       {source.distinct(f64, {5, 4, 4}), source.uniform(f64, {5, 4, 4})},
       by({kGreatest, {3, 3, 1}, {1, 1, 1}, {1, 0, 0}, {1, 2, 0}})},
      {"f32",
       {source.distinct(f32, {8, 8}), source.uniform(f32, {4, 4})},
       by({kGreatest, {2, 2}, {2, 2}, {0, 0}, {0, 0}})},
  };
}

}  // namespace

extern constinit const OpDef select_and_scatter_add_op = {
    .name = "select_and_scatter_add",
    .operands = "x, source",
    .doc =
        "Zeros to which each element of the source is added where its window of the operand has "
        "its greatest (least) element.",
    .example =
        "select_and_scatter_add(x, x, {.window = {1, 1}, .strides = {1, 1}, .low = {0, 0}, "
        ".high = {0, 0}})",
    .infer = infer_select_and_scatter,
    .sharding_rule = select_and_scatter_rule,
    .emit = emit_select_and_scatter,
    .vjp = select_and_scatter_vjp,
    .batch = batch_select_and_scatter,
    .samples = select_and_scatter_samples,
    .parse_attributes = parse_attributes<SelectAndScatterAddAttributes>,
};

Tensor select_and_scatter_add(In x, In source, SelectAndScatterAddAttributes windows) {
  Tensor operand = operand_tensor(select_and_scatter_add_op, x);
  Tensor values = operand_tensor(select_and_scatter_add_op, source);
  return record(select_and_scatter_add_op, make_attributes(std::move(windows)), {&operand, &values},
                x.where);
}

}  // namespace meshard
