#include "tests/partial_manual/subjects.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/autodiff/backward.h"
#include "meshard/graph/op_def.h"
#include "meshard/meshard.h"
#include "meshard/ops/definition/op_table.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard::partial_manual {
namespace {

using Call = std::function<Tensor(std::span<const Tensor>)>;
using Maker = std::function<std::vector<OpSample>(SampleSource&)>;

// The ops whose gradients are tried too: those that move, window or contract elements.
const std::set<std::string_view>& with_gradients() {
  static const std::set<std::string_view> ops{"broadcast_in_dim",
                                              "concat",
                                              "convolution",
                                              "cumulative_logsumexp",
                                              "cumulative_max",
                                              "cumulative_min",
                                              "cumulative_prod",
                                              "cumulative_sum",
                                              "dot_general",
                                              "dynamic_slice",
                                              "dynamic_update_slice",
                                              "fft",
                                              "flip",
                                              "gather",
                                              "max",
                                              "min",
                                              "pad",
                                              "permute_dims",
                                              "prod",
                                              "reduce_window_max",
                                              "reduce_window_min",
                                              "reduce_window_sum",
                                              "reshape",
                                              "scan",
                                              "scatter_add",
                                              "scatter_max",
                                              "scatter_min",
                                              "scatter_multiply",
                                              "scatter_set",
                                              "select_and_scatter_add",
                                              "slice",
                                              "sort",
                                              "sum",
                                              "switch_case",
                                              "triangular_solve"};
  return ops;
}

OpSample sample(std::string name, std::vector<HostArray> inputs, Call call) {
  return {std::move(name), std::move(inputs), std::move(call)};
}

// Collectives over "x" of local values.
std::vector<OpSample> collective_samples(std::string_view op, SampleSource& source) {
  std::vector<std::pair<std::string, std::function<Tensor(Tensor)>>> calls;
  if (op == "all_gather")
    calls = {{"rows", [](const Tensor& t) { return all_gather(t, "x", 0); }},
             {"columns", [](const Tensor& t) { return all_gather(t, "x", 1); }}};
  if (op == "all_reduce")
    for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax})
      calls.push_back({cat("kind ", static_cast<int>(kind)),
                       [kind](const Tensor& t) { return all_reduce(t, "x", kind); }});
  if (op == "all_to_all")
    calls = {{"0 to 1", [](const Tensor& t) { return all_to_all(t, "x", 0, 1); }},
             {"1 to 1", [](const Tensor& t) { return all_to_all(t, "x", 1, 1); }}};
  if (op == "collective_permute")
    calls = {{"ring", [](const Tensor& t) { return ring_shift(t, "x"); }},
             {"one pair", [](const Tensor& t) {
                return collective_permute(t, "x", {{0, 1}});
              }}};
  if (op == "reduce_scatter")
    calls = {{"rows", [](const Tensor& t) { return reduce_scatter(t, "x", 0); }},
             {"columns", [](const Tensor& t) { return reduce_scatter(t, "x", 1); }}};
  if (op == "vary") calls = {{"sum", [](const Tensor& t) { return vary(t, "x"); }}};
  std::vector<OpSample> samples;
  for (const auto& [name, call] : calls)
    samples.push_back(sample(name, {source.uniform(DType::f32, {8, 4})},
                             [call = call](auto x) { return call(sin(x[0])) + 1; }));
  return samples;
}

bool is_collective(std::string_view op) {
  static const std::set<std::string_view> ops{"all_gather",         "all_reduce",     "all_to_all",
                                              "collective_permute", "reduce_scatter", "vary"};
  return ops.contains(op);
}

// Functions composed of several ops whose partitioned form exchanges elements between neighbors.
std::vector<OpSample> shift_samples(SampleSource& source) {
  HostArray square = source.uniform(DType::f32, {8, 8}), odd = source.uniform(DType::f32, {5, 8});
  return {
      sample("roll rows", {square}, [](auto x) { return roll(x[0], 1, 0); }),
      sample("roll columns", {square}, [](auto x) { return roll(x[0], -3, 1); }),
      sample("roll uneven", {odd}, [](auto x) { return roll(x[0], 2, 0); }),
      sample("flip all", {square}, [](auto x) { return flip(x[0]); }),
      sample("interleaved", {square, square},
             [](auto x) {
               return reshape(stack({x[0], x[1]}, 1), {16, 8});
             }),
      sample("difference", {square}, [](auto x) { return diff(x[0], 0); }),
      sample("halves exchanged", {square},
             [](auto x) {
               return concat({slice(x[0], {4, 0}, {8, 8}), slice(x[0], {0, 0}, {4, 8})}, 0);
             }),
      sample("every second", {square},
             [](auto x) {
               return slice(x[0], {1, 0}, {8, 8}, {2, 3});
             }),
      sample("shifted in", {square},
             [](auto x) {
               return pad(slice(x[0], {0, 0}, {7, 8}), 0.5, {1, 0}, {0, 0});
             }),
      sample("transposed and shifted", {square},
             [](auto x) { return roll(matrix_transpose(x[0]), 1, 0) + x[0]; }),
      sample("running mean", {square},
             [](auto x) { return cumulative_sum(x[0], 1) / cumulative_max(x[0], 0); }),
      sample("two products", {square, square},
             [](auto x) { return matmul(matmul(x[0], x[1]), matrix_transpose(x[0])); }),
      sample("softmax", {square}, [](auto x) { return softmax(x[0], 1); }),
      sample("sorted", {square}, [](auto x) { return sort(-x[0], 1) + argmax(x[0], 0); }),
  };
}

std::vector<OpSample> lookup_samples(SampleSource& source) {
  HostArray table = source.uniform(DType::f32, {16, 8});
  HostArray tokens = source.uniform(DType::i32, {4, 4}, 0, 15);
  return {
      sample("take rows", {table, tokens}, [](auto x) { return take(x[0], x[1], 0); }),
      sample("take columns", {table, source.uniform(DType::i32, {6}, 0, 7)},
             [](auto x) { return take(x[0], x[1], 1); }),
      sample("mean of embeddings", {table, tokens},
             [](auto x) { return mean(take(tanh(x[0]), x[1], 0), 1); }),
      sample("along an axis", {table, source.uniform(DType::i32, {16, 8}, 0, 7)},
             [](auto x) { return take_along_axis(x[0], x[1], 1); }),
      sample("segment sum", {table, source.uniform(DType::i32, {16}, 0, 4)},
             [](auto x) { return segment_sum(x[0], x[1], 5); }),
      sample("one hot", {tokens}, [](auto x) { return one_hot(x[0], 16); }),
      sample("cross entropy", {table, source.uniform(DType::i32, {16, 1}, 0, 7)},
             [](auto x) { return take_along_axis(x[0] - logsumexp(x[0], 1, true), x[1], 1); }),
  };
}

std::vector<OpSample> window_samples(SampleSource& source) {
  DType f32 = DType::f32;
  HostArray images = source.distinct(f32, {4, 8, 8, 4}), series = source.uniform(f32, {4, 8, 4});
  return {
      sample("max_pool", {images},
             [](auto x) {
               return max_pool(x[0], {3, 3}, {.strides = {2, 2}});
             }),
      sample("avg_pool", {images},
             [](auto x) {
               return avg_pool(x[0], {2, 2});
             }),
      sample("conv1d", {series, source.uniform(f32, {3, 4, 6})},
             [](auto x) { return conv1d(x[0], x[1]); }),
      sample("conv2d", {images, source.uniform(f32, {3, 3, 4, 8})},
             [](auto x) { return relu(conv2d(x[0], x[1])); }),
      sample("depthwise", {images, source.uniform(f32, {3, 3, 1, 4})},
             [](auto x) { return conv2d(x[0], x[1], {.feature_groups = 4}); }),
      sample("fft of columns", {series}, [](auto x) { return abs(fft(x[0], std::nullopt, 1)); }),
      sample("transforms of matrices", {series}, [](auto x) { return real(fftn(x[0])); }),
  };
}

const std::map<std::string_view, Maker>& composites() {
  static const std::map<std::string_view, Maker> all{{"composite: shifts", shift_samples},
                                                     {"composite: lookups", lookup_samples},
                                                     {"composite: windows", window_samples}};
  return all;
}

std::vector<OpSample> samples_in_regions(std::string_view op, SampleSource& source) {
  if (is_collective(op)) return collective_samples(op, source);
  if (auto own = composites().find(op); own != composites().end()) return own->second(source);
  return samples_of(*find_op(op), source);
}

bool is_float(const HostArray& input) {
  return input.dtype() == DType::f32 || input.dtype() == DType::f64;
}

// The cotangents of the float inputs, for a fixed cotangent of the result.
std::vector<Tensor> gradient(const Call& call, std::span<const Tensor> inputs) {
  Tensor result = call(inputs);
  Tensor cotangent =
      astype(sin(1 + reshape(iota(DType::f32, {result.shape().size()}, 0), result.shape())),
             result.dtype());
  std::vector<Tensor> floats;
  for (const Tensor& input : inputs)
    if (input.dtype() == DType::f32 || input.dtype() == DType::f64) floats.push_back(input);
  Tensor loss = sum(result * cotangent), one = astype(Tensor(ones({})), result.dtype());
  return backward({&loss, 1}, {&one, 1}, floats, SourceLocation::current());
}

}  // namespace

std::string_view left_out(std::string_view op) {
  static const std::map<std::string_view, std::string_view> reasons{
      {"full_to_shard", "every region begins with it"},
      {"shard_to_full", "every region ends with it"},
      {"debug_print", "it prints"}};
  auto found = reasons.find(op);
  return found == reasons.end() ? std::string_view() : found->second;
}

std::vector<Subject> subjects_of(std::string_view op, std::uint64_t seed) {
  if (!left_out(op).empty()) return {};
  SampleSource first(seed), second(seed + 1000003);
  std::vector<OpSample> samples = samples_in_regions(op, first),
                        others = samples_in_regions(op, second);
  std::vector<Subject> subjects;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    Call call = samples[s].call;
    subjects.push_back({std::string(op),
                        samples[s].name,
                        {samples[s].inputs, others[s].inputs},
                        [call](auto x) { return std::vector<Tensor>{call(x)}; },
                        is_collective(op)});
  }
  bool differentiates = with_gradients().contains(op) || composites().contains(op);
  for (std::size_t s = 0; differentiates && s < samples.size(); ++s) {
    const std::vector<HostArray>& inputs = samples[s].inputs;
    bool smooth = std::any_of(inputs.begin(), inputs.end(), is_float) && samples[s].check_vjp &&
                  samples[s].name != "one hot" && samples[s].name != "empty";
    if (!smooth) continue;
    Subject back = subjects[s];
    back.sample += ", gradient";
    back.call = [call = samples[s].call](auto x) { return gradient(call, x); };
    subjects.push_back(std::move(back));
  }
  return subjects;
}

std::vector<std::string> all_subjects() {
  std::vector<std::string> names;
  for (const OpDef* op : all_ops()) names.emplace_back(op->name);
  for (const auto& [name, maker] : composites()) names.emplace_back(name);
  return names;
}

}  // namespace meshard::partial_manual
