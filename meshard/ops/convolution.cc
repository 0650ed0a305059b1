#include "meshard/ops/convolution.h"

#include <algorithm>
#include <string>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/window.h"

namespace meshard {
using namespace internal;
namespace {

// Indices into the dimension lists of ConvolutionAttributes.
constexpr std::size_t kBatch = 0, kFeature = 1, kOut = 0, kIn = 1, kSpatial = 2;

Windows kernel_windows(const ConvolutionAttributes& a, const Shape& kernel) {
  Windows windows{.size = {},
                  .stride = a.strides,
                  .low = a.low,
                  .high = a.high,
                  .dilation = a.kernel_dilation,
                  .base_dilation = a.input_dilation};
  for (std::size_t d = kSpatial; d < a.kernel.size(); ++d)
    windows.size.push_back(kernel[a.kernel[d]]);
  return windows;
}

// The sizes of the spatial dimensions.
Dimensions spatial_sizes(const Shape& shape, const Dimensions& layout) {
  Dimensions sizes;
  for (std::size_t d = kSpatial; d < layout.size(); ++d) sizes.push_back(shape[layout[d]]);
  return sizes;
}

void check_layout(const OpCall& call, std::string_view what, const Dimensions& layout, int rank) {
  Dimensions sorted = layout;
  std::sort(sorted.begin(), sorted.end());
  bool whole = layout.size() == static_cast<std::size_t>(rank);
  for (std::size_t d = 0; d < sorted.size(); ++d)
    whole = whole && sorted[d] == static_cast<std::int64_t>(d);
  if (!whole)
    call.fail("the layout of the ", what, " [", join(layout, ", "), "] does not name each of its ",
              rank, " dimensions once");
}

void check_groups(const OpCall& call, const ConvolutionAttributes& a) {
  const Shape &input = call.operand(0).shape, &kernel = call.operand(1).shape;
  if (a.feature_groups < 1 || a.batch_groups < 1 || (a.feature_groups > 1 && a.batch_groups > 1))
    call.fail("feature_groups = ", a.feature_groups, " and batch_groups = ", a.batch_groups,
              ": one of them must be 1, and the other 1 or more");
  std::int64_t features = input[a.input[kFeature]], taken = kernel[a.kernel[kIn]];
  if (features != taken * a.feature_groups)
    call.fail("the input ", call.operand(0), " has ", features, " features, but the kernel ",
              call.operand(1), " takes ", taken, " in each of ", a.feature_groups, " groups");
  std::int64_t out = kernel[a.kernel[kOut]], groups = std::max(a.feature_groups, a.batch_groups);
  if (out % groups != 0)
    call.fail("the kernel's ", out, " output features are not a multiple of ", groups, " groups");
  if (input[a.input[kBatch]] % a.batch_groups != 0)
    call.fail("the batch of ", input[a.input[kBatch]], " is not a multiple of ", a.batch_groups,
              " groups");
}

void infer_convolution(const OpCall& call, ResultTypes& results) {
  const auto& a = call.as<ConvolutionAttributes>();
  const TensorType &input = call.operand(0), &kernel = call.operand(1);
  if (input.dtype != kernel.dtype) call.fail("operand dtypes differ: ", input, " and ", kernel);
  if (input.dtype == DType::bool_) call.fail("takes numbers, not ", input);
  if (input.rank() != kernel.rank() || input.rank() < 2)
    call.fail("the input ", input, " and the kernel ", kernel,
              " must have the same rank: a batch, features and spatial dimensions");
  check_layout(call, "input", a.input, input.rank());
  check_layout(call, "kernel", a.kernel, input.rank());
  check_layout(call, "result", a.result, input.rank());
  Windows windows = kernel_windows(a, kernel.shape);
  for (std::size_t d = 0; d < windows.rank(); ++d)
    if (windows.size[d] < 1)
      call.fail("the kernel ", kernel, " has no element along dimension ", a.kernel[d + kSpatial]);
  Dimensions spatial = spatial_sizes(input.shape, a.input);
  check_windows(call, windows, spatial);
  check_groups(call, a);
  Dimensions sizes(a.result.size());
  auto at = [&](std::size_t place) -> std::int64_t& {
    return sizes[static_cast<std::size_t>(a.result[place])];
  };
  at(kBatch) = input.shape[a.input[kBatch]] / a.batch_groups;
  at(kFeature) = kernel.shape[a.kernel[kOut]];
  for (std::size_t d = 0; d < windows.rank(); ++d) at(d + kSpatial) = windows.count(d, spatial[d]);
  results.push_back({input.dtype, Shape(std::move(sizes))});
}

// The partitioner gathers feature groups with more than one input feature, and the batch with them.
bool gathers_groups(const OpCall& call) {
  const auto& a = call.as<ConvolutionAttributes>();
  return a.feature_groups > 1 && call.operand(1).shape[a.kernel[kIn]] > 1;
}

template <FactorKind of_gathered_batch>
ShardingRule convolution_rule(const OpCall& call) {
  const auto& a = call.as<ConvolutionAttributes>();
  const Shape &input = call.operand(0).shape, &kernel = call.operand(1).shape;
  const Shape& result = call.result().shape;
  Windows windows = kernel_windows(a, kernel);
  ShardingRuleBuilder builder;
  TensorFactors in(a.input.size()), weights(a.input.size()), out(a.input.size());
  auto at = [](TensorFactors& tensor, std::int64_t d) -> DimensionFactors& {
    return tensor[static_cast<std::size_t>(d)];
  };
  // Groups are the most significant part of the dimensions that they divide.
  std::int64_t groups = std::max(a.feature_groups, a.batch_groups);
  DimensionFactors group;
  bool gathers = gathers_groups(call);
  if (groups > 1)
    group.push_back(
        builder.factor(groups, gathers ? FactorKind::kNeedReplication : FactorKind::kPassThrough));
  auto grouped = [&](int factor) {
    DimensionFactors factors = group;
    factors.push_back(factor);
    return factors;
  };
  int batch = builder.factor(result[a.result[kBatch]],
                             gathers ? of_gathered_batch : FactorKind::kPassThrough);
  int features = builder.factor(kernel[a.kernel[kOut]] / groups);
  int summed = builder.factor(kernel[a.kernel[kIn]], FactorKind::kReduction);
  at(in, a.input[kBatch]) = a.batch_groups > 1 ? grouped(batch) : DimensionFactors{batch};
  at(in, a.input[kFeature]) = a.feature_groups > 1 ? grouped(summed) : DimensionFactors{summed};
  at(weights, a.kernel[kOut]) = at(out, a.result[kFeature]) = grouped(features);
  at(weights, a.kernel[kIn]) = {summed};
  at(out, a.result[kBatch]) = {batch};
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    std::int64_t from = a.input[d + kSpatial], to = a.result[d + kSpatial];
    if (windows.base_dilation[d] > 1) {
      // Quirk::kWholeConvolutions
      at(in, from) = {builder.factor(input[from], FactorKind::kNeedReplication)};
      at(out, to) = {builder.factor(result[to], FactorKind::kNeedReplication)};
    } else {
      WindowFactors factors = window_factors(builder, windows, d, input[from], result[to]);
      at(in, from) = factors.base;
      at(out, to) = factors.result;
    }
    at(weights,
       a.kernel[d + kSpatial]) = {builder.factor(windows.size[d], FactorKind::kNeedReplication)};
  }
  return builder.operand(std::move(in)).operand(std::move(weights)).result(std::move(out)).build();
}

void emit_convolution(const OpCall& call, OpEmission& out) {
  const auto& a = call.as<ConvolutionAttributes>();
  stablehlo::ConvolutionDimensionNumbers numbers;
  auto spatial = [](const Dimensions& layout) {
    return Dimensions(layout.begin() + kSpatial, layout.end());
  };
  numbers.input_batch = a.input[kBatch];
  numbers.input_feature = a.input[kFeature];
  numbers.input_spatial = spatial(a.input);
  numbers.kernel_output_feature = a.kernel[kOut];
  numbers.kernel_input_feature = a.kernel[kIn];
  numbers.kernel_spatial = spatial(a.kernel);
  numbers.output_batch = a.result[kBatch];
  numbers.output_feature = a.result[kFeature];
  numbers.output_spatial = spatial(a.result);
  out.op("stablehlo.convolution")
      .i64_array("window_strides", a.strides)
      .dense("padding", padding_array(kernel_windows(a, call.operand(1).shape)))
      .i64_array("lhs_dilation", a.input_dilation)
      .i64_array("rhs_dilation", a.kernel_dilation)
      .dimension_numbers("dimension_numbers", numbers)
      .i64("feature_group_count", a.feature_groups)
      .i64("batch_group_count", a.batch_groups)
      .done();
}

// Moves the most significant part, of size `groups`, of dimension `from` of `x` to the front of
// dimension `to`.
Tensor regrouped(const Tensor& x, std::int64_t from, std::int64_t to, std::int64_t groups) {
  Dimensions cut, order, sizes;
  for (int d = 0; d < x.shape().rank(); ++d) {
    if (d == from) cut.push_back(groups);
    cut.push_back(d == from ? x.shape()[d] / groups : x.shape()[d]);
  }
  for (std::int64_t d = 0; d < x.shape().rank(); ++d) {
    if (d == to) order.push_back(from);
    order.push_back(d >= from ? d + 1 : d);
    std::int64_t size = x.shape()[d];
    sizes.push_back(d == from ? size / groups : d == to ? size * groups : size);
  }
  return reshape(permute_dims(reshape(x, std::move(cut)), std::move(order)), std::move(sizes));
}

Tensor record_convolution(const Tensor& input, const Tensor& kernel, ConvolutionAttributes a,
                          SourceLocation where);

// The cotangent of the input: the result's cotangent, dilated by the strides, convolved with the
// reversed kernel with input and output features exchanged.
Tensor input_cotangent(const ConvolutionAttributes& a, const Tensor& input, const Tensor& kernel,
                       const Tensor& cotangent) {
  Windows windows = kernel_windows(a, kernel.shape());
  std::int64_t groups = std::max(a.feature_groups, a.batch_groups);
  ConvolutionAttributes t = a;
  t.input = a.result;
  t.result = a.input;
  std::swap(t.kernel[kOut], t.kernel[kIn]);
  t.strides = a.input_dilation;
  t.input_dilation = a.strides;
  transpose_padding(windows, spatial_sizes(input.shape(), a.input),
                    spatial_sizes(cotangent.shape(), a.result), t.low, t.high);
  t.feature_groups = groups;
  t.batch_groups = 1;
  Tensor weights = flip(kernel, Dimensions(a.kernel.begin() + kSpatial, a.kernel.end()));
  if (groups > 1) weights = regrouped(weights, a.kernel[kOut], a.kernel[kIn], groups);
  Tensor out = record_convolution(cotangent, weights, std::move(t), {});
  if (a.batch_groups > 1) out = regrouped(out, a.input[kFeature], a.input[kBatch], groups);
  return out;
}

// The cotangent of the kernel: the input convolved with the result's cotangent, dilated by the
// strides; batch and features are exchanged.
Tensor kernel_cotangent(const ConvolutionAttributes& a, const Tensor& input, const Tensor& kernel,
                        const Tensor& cotangent) {
  Windows windows = kernel_windows(a, kernel.shape());
  ConvolutionAttributes t = a;
  std::swap(t.input[kBatch], t.input[kFeature]);
  t.kernel = a.result;  // its features are output features, its batch is summed over
  std::swap(t.kernel[kOut], t.kernel[kIn]);
  t.result = a.kernel;
  std::swap(t.result[kBatch], t.result[kFeature]);
  t.strides = a.kernel_dilation;
  t.kernel_dilation = a.strides;
  std::swap(t.feature_groups, t.batch_groups);
  Dimensions sizes = spatial_sizes(input.shape(), a.input);
  Dimensions counts = spatial_sizes(cotangent.shape(), a.result);
  for (std::size_t d = 0; d < windows.rank(); ++d)
    // As many positions as the kernel has elements.
    t.high[d] = dilated_size(counts[d], windows.stride[d]) + windows.extent(d) - 1 -
                dilated_size(sizes[d], windows.base_dilation[d]) - windows.low[d];
  return record_convolution(input, cotangent, std::move(t), {});
}

void convolution_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& a = call.as<ConvolutionAttributes>();
  const Tensor& cotangent = call.cotangents[0];
  if (cotangent.shape().size() == 0) return;  // nothing was computed
  if (call.needs(0)) out[0] = input_cotangent(a, call.operands[0], call.operands[1], cotangent);
  if (call.needs(1)) out[1] = kernel_cotangent(a, call.operands[0], call.operands[1], cotangent);
}

// Merges the batch, dimension 0 of `x`, into dimension `at` of a member, as its most significant
// part.
Tensor folded_batch(const Tensor& x, std::int64_t at) {
  Dimensions order, sizes;
  for (std::int64_t d = 1; d < x.shape().rank(); ++d) {
    if (d - 1 == at) order.push_back(0);
    order.push_back(d);
    sizes.push_back(x.shape()[static_cast<int>(d)] * (d - 1 == at ? x.shape()[0] : 1));
  }
  return reshape(permute_dims(x, std::move(order)), std::move(sizes));
}

// The inverse of folded_batch.
Tensor unfolded_batch(const Tensor& x, std::int64_t at, std::int64_t size) {
  Dimensions sizes, order{at};
  for (std::int64_t d = 0; d < x.shape().rank(); ++d) {
    if (d == at) sizes.push_back(size);
    sizes.push_back(x.shape()[static_cast<int>(d)] / (d == at ? size : 1));
    order.push_back(d < at ? d : d + 1);
  }
  return permute_dims(reshape(x, std::move(sizes)), std::move(order));
}

// If only the input is batched, the members extend its batch dimension; if only the kernel is, they
// extend its output features. If both are, or the convolution has groups, they become groups.
void batch_convolution(const BatchCall& call, std::span<Tensor> results) {
  ConvolutionAttributes a = call.as<ConvolutionAttributes>();
  SourceLocation where = call.node.where();
  if (!call.batched[1] && a.batch_groups == 1) {
    std::int64_t from = a.input[kBatch], to = a.result[kBatch];
    Tensor all = record_convolution(folded_batch(call.operands[0], from), call.operands[1],
                                    std::move(a), where);
    results[0] = unfolded_batch(all, to, call.size);
    return;
  }
  std::int64_t to = a.result[kFeature];
  Tensor kernel = folded_batch(batched_operand(call, 1), a.kernel[kOut]);
  Tensor input = call.operands[0];
  if (call.batched[0] || a.feature_groups > 1 || a.batch_groups > 1) {
    std::int64_t at = a.input[a.batch_groups > 1 ? kBatch : kFeature];
    input = folded_batch(batched_operand(call, 0), at);
    (a.batch_groups > 1 ? a.batch_groups : a.feature_groups) *= call.size;
  }
  results[0] =
      unfolded_batch(record_convolution(input, kernel, std::move(a), where), to, call.size);
}

// The dimensions of one operand: those of the letters `first` and `second`, then the spatial ones.
Dimensions read_layout(std::string_view letters, char first, char second, std::string_view spatial,
                       std::string_view what, SourceLocation where) {
  Dimensions layout;
  std::string wanted{first, second};
  wanted += spatial;
  for (char letter : wanted) {
    std::size_t place = letters.find(letter);
    if (place == letters.npos || letters.size() != wanted.size())
      throw_invalid(where, "[convolution] the layout of the ", what, " \"", letters,
                    "\" does not have the letters \"", wanted, "\"");
    layout.push_back(static_cast<std::int64_t>(place));
  }
  return layout;
}

// The default layout: features last, for a tensor of `rank`.
Dimensions features_last(int rank, bool is_kernel) {
  Dimensions layout;
  if (rank < 2) return layout;
  layout.push_back(is_kernel ? rank - 1 : 0);
  layout.push_back(is_kernel ? rank - 2 : rank - 1);
  for (int d = is_kernel ? 0 : 1; layout.size() < static_cast<std::size_t>(rank); ++d)
    layout.push_back(d);
  return layout;
}

void set_layout(ConvolutionAttributes& a, const ConvolutionLayout& layout, int rank,
                SourceLocation where) {
  std::string spatial;
  for (char letter : layout.input)
    if (letter != 'N' && letter != 'C') spatial.push_back(letter);
  a.input = layout.input.empty() ? features_last(rank, false)
                                 : read_layout(layout.input, 'N', 'C', spatial, "input", where);
  a.kernel = layout.kernel.empty() ? features_last(rank, true)
                                   : read_layout(layout.kernel, 'O', 'I', spatial, "kernel", where);
  a.result = layout.result.empty() ? features_last(rank, false)
                                   : read_layout(layout.result, 'N', 'C', spatial, "result", where);
}

// Reads one layout of `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: the positions of `first` and
// `second`, then those of the spatial dimensions.
Dimensions layout_in_text(std::string_view list, char first, char second, std::size_t rank) {
  Dimensions places(rank, -1);
  std::int64_t position = 0;
  for (char c : list) {
    if (c == ',') ++position;
    std::size_t entry = c == first ? 0 : c == second ? 1 : rank;
    if (c >= '0' && c <= '9') entry = static_cast<std::size_t>(c - '0') + 2;
    if (entry < rank) places[entry] = position;
  }
  return places;
}

std::unique_ptr<const Attributes> read_convolution(const OpText& text) {
  std::size_t rank = text.rank();
  std::string_view numbers = text.attribute({"dim_numbers", "dimension_numbers"});
  std::string_view window = text.attribute({"window"});
  std::size_t kernel = numbers.find("]x["), result = numbers.find("]->[");
  if (rank < 2 || kernel == std::string_view::npos || result == std::string_view::npos)
    return nullptr;
  ConvolutionAttributes a;
  a.input = layout_in_text(numbers.substr(0, kernel), 'b', 'f', rank);
  a.kernel = layout_in_text(numbers.substr(kernel, result - kernel), 'o', 'i', rank);
  a.result = layout_in_text(numbers.substr(result), 'b', 'f', rank);
  std::size_t spatial = rank - 2;
  auto list = [&](std::string_view pretty, std::string_view generic) {
    Dimensions found = list_in(window, pretty);
    return found.size() == spatial && spatial > 0 ? found : text.list_of({generic}, spatial, 1);
  };
  a.strides = list("stride", "window_strides");
  a.input_dilation = list("lhs_dilate", "lhs_dilation");
  a.kernel_dilation = list("rhs_dilate", "rhs_dilation");
  Dimensions padding = list_in(window, "pad");
  set_padding(padding.empty() ? text.list({"padding"}) : padding, spatial, a.low, a.high);
  a.feature_groups = text.number({"feature_group_count"}, 1);
  a.batch_groups = text.number({"batch_group_count"}, 1);
  return make_attributes(std::move(a));
}

}  // namespace

extern constinit const OpDef convolution_op = {
    .name = "convolution",
    .operands = "input, kernel",
    .doc =
        "The convolution of an input with a kernel: the sum of products at each position of the "
        "kernel on the input.",
    .example = "convolution(reshape(x, {1, 2, 3}), reshape(y, {2, 3, 1}))",
    .infer = infer_convolution,
    .sharding_rule = convolution_rule<FactorKind::kPassThrough>,
    .emit = emit_convolution,
    .read = {.mnemonic = "stablehlo.convolution",
             .attributes = read_convolution,
             .sharding_rule = convolution_rule<FactorKind::kNeedReplication>},
    .vjp = convolution_vjp,
    .batch = batch_convolution,
    .parse_attributes = parse_attributes<ConvolutionAttributes>,
    .traits = {.is_product = true, .runs_on_shards = gathers_groups},
};

namespace {

Tensor record_convolution(const Tensor& input, const Tensor& kernel, ConvolutionAttributes a,
                          SourceLocation where) {
  return record(convolution_op, make_attributes(std::move(a)), {&input, &kernel}, where);
}

}  // namespace

Tensor convolution(In input, In kernel, ConvolutionOptions options) {
  SourceScope line(input.where);
  SourceLocation where = effective_source(input.where);
  DType dtype = element_wise::common_dtype(convolution_op, input, kernel);
  Tensor x = element_wise::to_tensor(input, dtype),
         weights = element_wise::to_tensor(kernel, dtype);
  int rank = x.shape().rank();
  if (rank < 2 || weights.shape().rank() != rank)
    throw_invalid(where, "[convolution] the input ", x.type(), " and the kernel ", weights.type(),
                  " must have the same rank: a batch, features and spatial dimensions");
  ConvolutionAttributes a;
  set_layout(a, options.layout, rank, where);
  auto spatial = static_cast<std::size_t>(rank) - kSpatial;
  auto list = [&](Dimensions& given, std::string_view what) {
    return one_each(for_each_dimension(std::move(given), spatial), spatial, "convolution", what,
                    where);
  };
  a.strides = list(options.strides, "strides");
  a.input_dilation = list(options.input_dilation, "input_dilation");
  a.kernel_dilation = list(options.kernel_dilation, "kernel_dilation");
  a.feature_groups = options.feature_groups;
  a.batch_groups = options.batch_groups;
  Windows windows = kernel_windows(a, weights.shape());
  resolve_padding(windows, for_each_dimension(options.padding, spatial),
                  spatial_sizes(x.shape(), a.input), "convolution", where);
  a.low = windows.low;
  a.high = windows.high;
  return record_convolution(x, weights, std::move(a), where);
}

}  // namespace meshard
