// conv_*, *_pool*: sliding windows.
#include <cctype>

#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

// The paddings that are compatible with a case's words.
std::vector<WindowPadding> paddings(const std::string& words) {
  if (mentions(words, "same")) return {Padding::kSame};
  if (mentions(words, "valid")) return {Padding::kValid};
  return {Padding::kValid, Padding::kSame};
}

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

Dimensions each(std::int64_t value, int spatial) {
  return Dimensions(static_cast<std::size_t>(spatial), value);
}

// Reads `3x3 SAME`, `SAME stride 2 even size`, `input dilation 2`, `depthwise`, ...
ConvolutionOptions options_of(const std::string& words, const Json& test) {
  int spatial = static_cast<int>(test.at("inputs").at(0).at("shape").size()) - 2;
  ConvolutionOptions options;
  bool channels_first = mentions(words, "nchw");
  if (channels_first) options.layout = {.input = "NCHW", .kernel = "OIHW", .result = "NCHW"};
  std::int64_t stride = integer_behind(words, "stride", 1);
  options.strides = each(stride, spatial);
  std::int64_t dilation = integer_behind(words, "dilation", 1);
  bool of_input =
      mentions(words, "input") || mentions(words, "lhs") || mentions(words, "transpose");
  (of_input ? options.input_dilation : options.kernel_dilation) = each(dilation, spatial);
  const Json &input = test.at("inputs").at(0).at("shape"),
             &kernel = test.at("inputs").at(1).at("shape");
  std::int64_t features = channels_first ? input[1] : input.back();
  std::int64_t of_kernel = channels_first ? kernel[1] : kernel[kernel.size() - 2];
  options.feature_groups = features / of_kernel;
  return options;
}

// Supports only SAME and VALID: a case does not record any other padding of its window.
std::optional<Program> convolution_program(const Json& test) {
  std::string words =
      lower_case(test.at("id").get<std::string>() + " " + test.at("what").get<std::string>());
  std::vector<WindowPadding> said = paddings(words);
  if (said.size() != 1) return std::nullopt;
  ConvolutionOptions options = options_of(words, test);
  options.padding = said[0];
  return single([options](Inputs x) { return convolution(x[0], x[1], options); });
}

std::optional<Program> pooling(const Json& test) {
  std::string words =
      lower_case(test.at("id").get<std::string>() + " " + test.at("what").get<std::string>());
  std::vector<std::int64_t> window;
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    if (words[i] == 'x' && std::isdigit(words[i - 1]) && std::isdigit(words[i + 1])) {
      window = {words[i - 1] - '0', words[i + 1] - '0'};
      break;
    }
  if (window.empty()) return std::nullopt;
  std::int64_t stride = integer_behind(words, "stride", 1);
  Shape wanted = result_shape(test);
  return single([=, tried = paddings(words)](Inputs x) {
    for (const WindowPadding& padding : tried) {
      PoolOptions options{.strides = each(stride, 2), .padding = padding};
      Dimensions sizes(window.begin(), window.end());
      Tensor y = mentions(words, "max")   ? max_pool(x[0], sizes, options)
                 : mentions(words, "sum") ? avg_pool(x[0], sizes, options) * (window[0] * window[1])
                                          : avg_pool(x[0], sizes, options);
      if (y.shape() == wanted) return y;
    }
    throw_invalid({}, "no padding gives ", wanted);
  });
}

}  // namespace

std::optional<Program> window_program(const Json& test) {
  const std::string id = test.at("id");
  if (id.starts_with("conv_")) return convolution_program(test);
  if (mentions(id, "pool")) return pooling(test);
  return std::nullopt;
}

}  // namespace meshard::conformance
