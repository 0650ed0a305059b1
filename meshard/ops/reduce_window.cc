#include "meshard/ops/reduce_window.h"

#include <algorithm>
#include <limits>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/element_writer.h"
#include "meshard/ops/internal/window.h"

namespace meshard {
using namespace internal;
namespace {

enum class WindowFold { kSum, kMax, kMin };

Windows windows_of(const ReduceWindowAttributes& a) {
  return {.size = a.window,
          .stride = a.strides,
          .low = a.low,
          .high = a.high,
          .dilation = a.window_dilation,
          .base_dilation = a.base_dilation};
}

template <WindowFold fold>
void infer_reduce_window(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  if (operand.dtype == DType::bool_ || is_float8(operand.dtype) ||
      (fold != WindowFold::kSum && is_complex(operand.dtype)))
    call.fail("takes integers and floats of 16 bits or more",
              fold == WindowFold::kSum ? "" : ", but not complex numbers", "; not ", operand);
  Windows windows = windows_of(call.as<ReduceWindowAttributes>());
  check_windows(call, windows, operand.shape.sizes());
  Dimensions sizes;
  for (std::size_t d = 0; d < windows.rank(); ++d)
    sizes.push_back(windows.count(d, operand.shape.sizes()[d]));
  results.push_back({operand.dtype, Shape(std::move(sizes))});
}

ShardingRule reduce_window_rule(const OpCall& call) {
  Windows windows = windows_of(call.as<ReduceWindowAttributes>());
  const Dimensions &from = call.operand(0).shape.sizes(), &to = call.result().shape.sizes();
  ShardingRuleBuilder builder;
  TensorFactors in, out;
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    WindowFactors factors = window_factors(builder, windows, d, from[d], to[d]);
    in.push_back(factors.base);
    out.push_back(factors.result);
  }
  return builder.operand(std::move(in)).result(std::move(out)).build();
}

// The identity element of the reduction.
HostArray neutral(WindowFold fold, DType dtype) {
  if (fold == WindowFold::kSum) return HostArray::zeros({dtype, {}});
  return fold == WindowFold::kMax ? lowest_of(dtype) : highest_of(dtype);
}

template <WindowFold fold>
void emit_reduce_window(const OpCall& call, OpEmission& out) {
  constexpr std::string_view kBody[] = {kAdd, kMaximum, kMinimum};
  const auto& attributes = call.as<ReduceWindowAttributes>();
  TensorType scalar{call.operand(0).dtype, {}};
  stablehlo::Value start = out.writer.temporary();
  out.writer.constant(start, neutral(fold, scalar.dtype));
  stablehlo::OpWriter op = out.writer.op("stablehlo.reduce_window", out.results,
                                         {out.operands[0], {start, scalar}}, out.location);
  op.i64_array("window_dimensions", attributes.window)
      .i64_array("window_strides", attributes.strides)
      .i64_array("base_dilations", attributes.base_dilation)
      .i64_array("window_dilations", attributes.window_dilation)
      .dense("padding", padding_array(windows_of(attributes)));
  write_reducer(op, out, kBody[static_cast<int>(fold)], scalar.dtype).done();
}

// Every element receives the sum of the cotangents of the windows that contain it: again a sum of
// windows.
void window_sum_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& attributes = call.as<ReduceWindowAttributes>();
  Windows windows = windows_of(attributes);
  Dimensions low, high, gaps = attributes.strides;
  transpose_padding(windows, call.operands[0].shape().sizes(), call.cotangents[0].shape().sizes(),
                    low, high);
  for (std::int64_t& n : gaps) --n;
  Tensor spread = pad(call.cotangents[0], 0, std::move(low), std::move(high), std::move(gaps));
  out[0] = reduce_window_sum(
      spread, attributes.window,
      {.strides = attributes.base_dilation, .window_dilation = attributes.window_dilation});
}

template <WindowFold fold>
void window_extreme_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& attributes = call.as<ReduceWindowAttributes>();
  Windows windows = windows_of(attributes);
  const Tensor& x = call.operands[0];
  constexpr bool kGreatest = fold == WindowFold::kMax;
  double padding = neutral(fold, x.dtype()).astype(DType::f64).item<double>();
  auto all_are = [](const Dimensions& list, std::int64_t wanted) {
    return std::all_of(list.begin(), list.end(), [=](std::int64_t n) { return n == wanted; });
  };
  // select_and_scatter has no dilation. With padding, XLA does not visit the elements of a window
  // in order, so it may not select the first of equal elements.
  bool plain = all_are(windows.dilation, 1) && all_are(windows.low, 0) && all_are(windows.high, 0);
  if (!plain) {
    const Dimensions& counts = call.cotangents[0].shape().sizes();
    Tensor padded = padded_for_windows(x, padding, windows);
    Tensor chosen = chosen_places(window_elements(padded, windows, counts),
                                  window_members(x.shape(), windows, counts), kGreatest);
    out[0] = scattered_to_windows(call.cotangents[0], chosen, windows, x.shape());
    return;
  }
  // It has no base dilation either: the gaps are filled before it and removed after it.
  Dimensions zero(windows.rank(), 0), gaps = windows.base_dilation;
  for (std::int64_t& n : gaps) --n;
  Tensor spread = pad(x, filled({x.dtype(), {}}, padding), zero, zero, gaps);
  Tensor scattered =
      select_and_scatter_add(spread, call.cotangents[0],
                             {.select = kGreatest ? WindowSelect::kGreatest : WindowSelect::kLeast,
                              .window = attributes.window,
                              .strides = attributes.strides,
                              .low = attributes.low,
                              .high = attributes.high});
  out[0] = slice(scattered, zero, scattered.shape().sizes(), windows.base_dilation);
}

void batch_reduce_window(const BatchCall& call, std::span<Tensor> results) {
  const auto& a = call.as<ReduceWindowAttributes>();
  ReduceWindowAttributes batched{with_entry(1, a.window),        with_entry(1, a.strides),
                                 with_entry(0, a.low),           with_entry(0, a.high),
                                 with_entry(1, a.base_dilation), with_entry(1, a.window_dilation)};
  record_batched(call, make_attributes(std::move(batched)), batched_operands(call), results);
}

std::unique_ptr<const Attributes> read_windows(const OpText& text) {
  std::size_t rank = text.rank();
  ReduceWindowAttributes windows;
  windows.window = text.list_of({"window_dimensions"}, rank, 1);
  windows.strides = text.list_of({"window_strides"}, rank, 1);
  windows.base_dilation = text.list_of({"base_dilations"}, rank, 1);
  windows.window_dilation = text.list_of({"window_dilations"}, rank, 1);
  set_padding(text.list({"padding"}), rank, windows.low, windows.high);
  return make_attributes(std::move(windows));
}

template <WindowFold fold>
constexpr OpDef reduce_window(std::string_view name, std::string_view doc,
                              std::string_view example) {
  OpDef def;
  def.name = name;
  def.operands = "x";
  def.doc = doc;
  def.example = example;
  def.infer = infer_reduce_window<fold>;
  def.sharding_rule = reduce_window_rule;
  def.emit = emit_reduce_window<fold>;
  if constexpr (fold == WindowFold::kSum) {
    def.read = {
        .mnemonic = "stablehlo.reduce_window", .attributes = read_windows, .own_operands = 1};
    def.vjp = window_sum_vjp;
  } else {
    def.vjp = window_extreme_vjp<fold>;
  }
  def.batch = batch_reduce_window;
  def.parse_attributes = parse_attributes<ReduceWindowAttributes>;
  return def;
}

Tensor record_windows(const OpDef& op, const In& x, Dimensions window, WindowOptions options) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor(op, x);
  auto rank = static_cast<std::size_t>(operand.rank());
  if (window.size() != rank)
    throw_invalid(where, "[", op.name, "] the window [", join(window, ", "), "] has ",
                  window.size(), " sizes, but ", operand.type(), " has rank ", rank);
  Windows windows;
  windows.size = std::move(window);
  windows.stride = one_each(std::move(options.strides), rank, op.name, "strides", where);
  windows.base_dilation =
      one_each(std::move(options.base_dilation), rank, op.name, "base_dilation", where);
  windows.dilation =
      one_each(std::move(options.window_dilation), rank, op.name, "window_dilation", where);
  resolve_padding(windows, options.padding, operand.shape().sizes(), op.name, where);
  return record(op,
                make_attributes(ReduceWindowAttributes{windows.size, windows.stride, windows.low,
                                                       windows.high, windows.base_dilation,
                                                       windows.dilation}),
                {&operand}, where);
}

}  // namespace

extern constinit const OpDef reduce_window_sum_op = reduce_window<WindowFold::kSum>(
    "reduce_window_sum", "The sum of the elements of each window that slides over the operand.",
    "reduce_window_sum(x, {1, 2})");
extern constinit const OpDef reduce_window_max_op = reduce_window<WindowFold::kMax>(
    "reduce_window_max", "The largest element of each window that slides over the operand.",
    "reduce_window_max(x, {1, 2})");
extern constinit const OpDef reduce_window_min_op = reduce_window<WindowFold::kMin>(
    "reduce_window_min", "The smallest element of each window that slides over the operand.",
    "reduce_window_min(x, {1, 2})");

Tensor reduce_window_sum(In x, Dimensions window, WindowOptions options) {
  return record_windows(reduce_window_sum_op, x, std::move(window), std::move(options));
}
Tensor reduce_window_max(In x, Dimensions window, WindowOptions options) {
  return record_windows(reduce_window_max_op, x, std::move(window), std::move(options));
}
Tensor reduce_window_min(In x, Dimensions window, WindowOptions options) {
  return record_windows(reduce_window_min_op, x, std::move(window), std::move(options));
}

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
  stablehlo::OpWriter op =
      out.writer.op("stablehlo.select_and_scatter", out.results,
                    {out.operands[0], out.operands[1], {zero, scalar}}, out.location);
  op.i64_array("window_dimensions", attributes.window)
      .i64_array("window_strides", attributes.strides)
      .dense("padding", padding_array(scatter_windows(attributes)))
      .region({{a, scalar}, {b, scalar}}, [&] {
        stablehlo::Value keep = out.writer.temporary();
        out.writer.op("stablehlo.compare", {{keep, truth}}, {{a, scalar}, {b, scalar}})
            .enumeration("comparison_direction", "comparison_direction",
                         attributes.select == WindowSelect::kGreatest ? "GE" : "LE")
            .done();
        out.writer.terminate({{keep, truth}});
      });
  write_reducer(op, out, kAdd, scalar.dtype).done();
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

std::unique_ptr<const Attributes> read_select_and_scatter(const OpText& text) {
  std::size_t rank = text.rank();
  SelectAndScatterAddAttributes windows;
  windows.window = text.list_of({"window_dimensions"}, rank, 1);
  windows.strides = text.list_of({"window_strides"}, rank, 1);
  set_padding(text.list({"padding"}), rank, windows.low, windows.high);
  return make_attributes(std::move(windows));
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
    .read = {.mnemonic = "stablehlo.select_and_scatter",
             .attributes = read_select_and_scatter,
             .own_operands = 2},
    .vjp = select_and_scatter_vjp,
    .batch = batch_select_and_scatter,
    .parse_attributes = parse_attributes<SelectAndScatterAddAttributes>,
};

Tensor select_and_scatter_add(In x, In source, SelectAndScatterAddAttributes windows) {
  Tensor operand = operand_tensor(select_and_scatter_add_op, x);
  Tensor values = operand_tensor(select_and_scatter_add_op, source);
  return record(select_and_scatter_add_op, make_attributes(std::move(windows)), {&operand, &values},
                x.where);
}

}  // namespace meshard
