#include "meshard/explain/cost/flops.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

namespace meshard {
namespace {

constexpr std::string_view kTranscendental[] = {
    "acos", "acosh",        "asin",     "asinh", "atan2",       "atanh",
    "cbrt", "cosh",         "cosine",   "erf",   "exponential", "exponential-minus-one",
    "log",  "log-plus-one", "logistic", "power", "rng",         "rsqrt",
    "sine", "sinh",         "sqrt",     "tan",   "tanh"};
constexpr std::string_view kElementWise[] = {"abs",
                                             "add",
                                             "and",
                                             "ceil",
                                             "clamp",
                                             "compare",
                                             "complex",
                                             "convert",
                                             "count-leading-zeros",
                                             "divide",
                                             "floor",
                                             "imag",
                                             "is-finite",
                                             "maximum",
                                             "minimum",
                                             "multiply",
                                             "negate",
                                             "not",
                                             "or",
                                             "popcnt",
                                             "real",
                                             "reduce-precision",
                                             "remainder",
                                             "round-nearest-afz",
                                             "round-nearest-even",
                                             "select",
                                             "shift-left",
                                             "shift-right-arithmetic",
                                             "shift-right-logical",
                                             "sign",
                                             "subtract",
                                             "xor"};

static_assert(std::is_sorted(std::begin(kTranscendental), std::end(kTranscendental)));
static_assert(std::is_sorted(std::begin(kElementWise), std::end(kElementWise)));

template <std::size_t N>
bool is_one_of(std::string_view opcode, const std::string_view (&sorted)[N]) {
  return std::binary_search(std::begin(sorted), std::end(sorted), opcode);
}

const HloShape& first_array(const HloShape& shape) {
  const HloShape* at = &shape;
  while (at->is_tuple && !at->tuple.empty()) at = &at->tuple.front();
  return *at;
}

double elements(const HloShape& shape) {
  return shape.is_tuple ? 0 : static_cast<double>(shape.element_count());
}

double size_at(const HloShape& shape, std::int64_t dimension) {
  if (dimension < 0 || dimension >= std::ssize(shape.dimensions)) return 1;
  return static_cast<double>(
      std::max<std::int64_t>(shape.dimensions[static_cast<std::size_t>(dimension)], 0));
}

double dot_flops(const HloInstruction& one, const HloShape& left) {
  double terms = 1;
  for (std::int64_t dimension : one.dot->lhs_contracting) terms *= size_at(left, dimension);
  return 2 * elements(first_array(one.shape)) * terms;
}

// The number of integers o in [0, count) with low <= o * stride < high.
double count_between(double count, double stride, double low, double high) {
  double first = std::max(0.0, std::ceil(low / stride));
  double end = std::min(count, std::ceil(high / stride));
  return std::max(0.0, end - first);
}

// The number of (window position, output position) pairs along one dimension that read an input
// element, not padding or a dilation hole.
double window_terms(const HloWindowDimension& window, double input, double output) {
  constexpr std::int64_t kMostSteps = 1 << 16;
  auto at_least_one = [](std::int64_t value) { return std::max<std::int64_t>(value, 1); };
  std::int64_t size = std::max<std::int64_t>(window.size, 0);
  std::int64_t base = at_least_one(window.base_dilation);
  if (size > kMostSteps / std::min(base, kMostSteps)) return static_cast<double>(size) * output;
  double stride = static_cast<double>(at_least_one(window.stride));
  double wide = (input - 1) * static_cast<double>(base) + 1;  // including the dilation holes
  double terms = 0;
  for (std::int64_t k = 0; k < size; ++k) {
    double shift =
        static_cast<double>(window.padding_low) -
        static_cast<double>(k) * static_cast<double>(at_least_one(window.window_dilation));
    if (base == 1) {
      terms += count_between(output, stride, shift, shift + wide);
      continue;
    }
    // o * stride - shift must be a multiple of the dilation: o = first + base' * i.
    for (std::int64_t first = 0; first < base && static_cast<double>(first) < output; ++first) {
      double at = static_cast<double>(first) * stride - shift;
      if (std::fmod(at, static_cast<double>(base)) != 0) continue;
      double count = std::ceil((output - static_cast<double>(first)) / static_cast<double>(base));
      terms += count_between(count, stride * static_cast<double>(base), -at, wide - at);
    }
  }
  return terms;
}

double convolution_flops(const HloInstruction& one, const HloShape& input, const HloShape& kernel) {
  const HloConvolutionDimensions& meaning = *one.convolution;
  const HloShape& output = first_array(one.shape);
  double terms = 1;
  for (std::size_t i = 0; i < one.window.size() && i < meaning.input_spatial.size() &&
                          i < meaning.output_spatial.size();
       ++i)
    terms *= window_terms(one.window[i], size_at(input, meaning.input_spatial[i]),
                          size_at(output, meaning.output_spatial[i]));
  double feature_groups = static_cast<double>(std::max<std::int64_t>(one.feature_groups, 1));
  double batch_groups = static_cast<double>(std::max<std::int64_t>(one.batch_groups, 1));
  return 2 * terms * size_at(input, meaning.input_feature) / feature_groups *
         size_at(kernel, meaning.kernel_output_feature) * size_at(input, meaning.input_batch) /
         batch_groups;
}

// The product of the left operand's contracting dimensions, read from the backend config of a GPU
// library call: `"lhs_contracting_dimensions":["1"]`.
double contracted_size(std::string_view config, const HloShape& left) {
  constexpr std::string_view kKey = "\"lhs_contracting_dimensions\":[";
  std::size_t at = config.find(kKey);
  if (at == std::string_view::npos) return 0;
  std::string_view list = config.substr(at + kKey.size());
  list = list.substr(0, list.find(']'));
  double terms = 1;
  for (std::size_t i = list.find_first_of("0123456789"); i != std::string_view::npos;
       i = list.find_first_of("0123456789", i)) {
    std::int64_t dimension = 0;
    auto [end, error] = std::from_chars(list.data() + i, list.data() + list.size(), dimension);
    if (error != std::errc()) return 0;
    terms *= size_at(left, dimension);
    i = static_cast<std::size_t>(end - list.data());
  }
  return terms;
}

double library_flops(const HloInstruction& one, const HloShape& left, const HloShape& right) {
  std::string_view target = one.custom_call_target;
  if (target.starts_with("__cublas$") || target.starts_with("__triton$gemm"))
    return 2 * elements(first_array(one.shape)) * contracted_size(one.backend_config, left);
  if (target.starts_with("__cudnn$conv") && one.convolution)
    return convolution_flops(one, left, right);
  return 0;
}

double matrix_operations(const HloInstruction& one, const HloShape& left, const HloShape& right) {
  if (one.opcode == "dot" && one.dot) return dot_flops(one, left);
  if (one.opcode == "convolution" && one.convolution) return convolution_flops(one, left, right);
  if (one.opcode == "custom-call") return library_flops(one, left, right);
  return 0;
}

// True if the window covers the whole dimension at every output position. It is then one sum that
// is broadcast: TPU compilers write a reduction followed by a broadcast this way.
bool takes_all(const HloWindowDimension& window, double input, double output) {
  auto low = static_cast<double>(window.padding_low);
  double last = (output - 1) * static_cast<double>(window.stride);
  return window.base_dilation <= 1 && window.window_dilation <= 1 && last <= low &&
         static_cast<double>(window.size) >= input + low;
}

double reduce_window_sums(const HloInstruction& one, const HloShape& input) {
  const HloShape& output = first_array(one.shape);
  double sums = 1, places = 1;
  for (std::size_t i = 0; i < one.window.size(); ++i) {
    const HloWindowDimension& window = one.window[i];
    double in = size_at(input, static_cast<std::int64_t>(i));
    double out = size_at(output, static_cast<std::int64_t>(i));
    bool all = takes_all(window, in, out);
    sums *= all ? in : out * static_cast<double>(std::max<std::int64_t>(window.size, 1));
    places *= all ? 1 : out;
  }
  return std::max(0.0, sums - places);
}

}  // namespace

OperationCount operations_of(const InstructionIndex& computation, const HloInstruction& one) {
  OperationCount count;
  std::string_view opcode = one.opcode;
  if (is_one_of(opcode, kElementWise)) {
    count.other = elements(one.shape);
  } else if (is_one_of(opcode, kTranscendental)) {
    count.transcendentals = elements(one.shape);
  } else if (opcode == "all-reduce" || opcode == "all-reduce-start" || opcode == "reduce-scatter") {
    for (const HloInstruction* operand : computation.operands(one))
      count.other += elements(operand->shape);
  } else if (const HloInstruction* left = computation.operand(one, 0)) {
    const HloInstruction* right = computation.operand(one, 1);
    count.matrix = matrix_operations(one, left->shape, right ? right->shape : left->shape);
  }
  return count;
}

double applications_of(const InstructionIndex& computation, const HloInstruction& one) {
  const HloInstruction* operand = computation.operand(one, 0);
  double taken = operand ? elements(operand->shape) : 0;
  double made = elements(first_array(one.shape));
  if (one.opcode == "reduce") return std::max(0.0, taken - made);
  if (one.opcode == "map") return made;
  if (one.opcode == "sort") return taken > 1 ? taken * std::log2(taken) : 0;
  if (one.opcode == "reduce-window") return operand ? reduce_window_sums(one, operand->shape) : 0;
  if (one.opcode == "scatter") {
    const HloInstruction* updates =
        one.operands.empty() ? nullptr : computation.find(one.operands.back());
    return updates ? elements(updates->shape) : 0;
  }
  if (one.opcode == "select-and-scatter") return taken;
  return 0;
}

pjrt::ElementType computed_type(const InstructionIndex& computation, const HloInstruction& one) {
  const HloInstruction* operand = computation.operand(one, 0);
  if (one.opcode == "select") operand = nullptr;  // its first operand is the predicate
  const HloShape& shape = first_array(operand ? operand->shape : one.shape);
  return pjrt::bit_width(shape.element) > 0 ? shape.element : first_array(one.shape).element;
}

}  // namespace meshard
