// Convolutions, pooling and window reductions.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

// Reads `same`, `valid`, `same_lower`, or pairs.
WindowPadding padding_of(const Attributes& at) {
  constexpr Padding kRules[] = {Padding::kValid, Padding::kSame, Padding::kSameLower};
  const Json& said = at.at("padding");
  if (said.is_string()) return kRules[at.one_of("padding", {"valid", "same", "same_lower"})];
  WindowPadding::Pairs pairs;
  for (const Json& pair : said) {
    if (!pair.is_array() || pair.size() != 2) throw Unreadable("a padding that is not a pair");
    pairs.emplace_back(pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>());
  }
  return pairs;
}

Tensor convolved(Operands x, const Attributes& at) {
  ConvolutionOptions options{.strides = at.list("strides"),
                             .padding = padding_of(at),
                             .input_dilation = at.list("input_dilation"),
                             .kernel_dilation = at.list("kernel_dilation"),
                             .feature_groups = at.integer("feature_groups")};
  return convolution(x[0], x[1], options);
}

Tensor transposed(Operands x, const Attributes& at) {
  ConvolutionOptions options{.strides = at.list("strides"), .padding = padding_of(at)};
  return conv_transpose(x[0], x[1], options);
}

Tensor pooled(Operands x, const Attributes& at) {
  PoolOptions options{.strides = at.list("strides"), .padding = padding_of(at)};
  if (!at.has("count_padding")) return max_pool(x[0], at.list("window"), options);
  options.count_padding = at.flag("count_padding");
  return avg_pool(x[0], at.list("window"), options);
}

CallFunction windows(Tensor (*op)(In, Dimensions, WindowOptions)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.list("window"),
              {.strides = at.list("strides"),
               .padding = padding_of(at),
               .base_dilation = at.list("base_dilation"),
               .window_dilation = at.list("window_dilation")});
  });
}

}  // namespace

const CallTable& window_calls() {
  static const CallTable table{
      {"convolution", one_result(convolved)},
      {"conv_transpose", one_result(transposed)},
      {"max_pool", one_result(pooled)},
      {"avg_pool", one_result(pooled)},
      {"reduce_window_sum", windows(reduce_window_sum)},
      {"reduce_window_max", windows(reduce_window_max)},
      {"reduce_window_min", windows(reduce_window_min)},
  };
  return table;
}

}  // namespace meshard::conformance
