// Samples of reductions, products, windows, factorizations and transforms.
#include <cmath>

#include "meshard/ops/all.h"
#include "meshard/ops/internal/matrix_operand.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
using namespace internal;
namespace {

using Cumulative = Tensor (*)(In, std::int64_t, bool);

// The call of a reduction along fixed dimensions.
template <class Op>
auto over(Op op, DimensionList dimensions, bool keepdims = false) {
  return [=](std::span<const Tensor> x) { return op(x[0], dimensions, keepdims); };
}

std::vector<OpSample> convolution_samples(SampleSource& source) {
  auto by = [](ConvolutionOptions options) {
    return [=](std::span<const Tensor> x) { return convolution(x[0], x[1], options); };
  };
  auto pair = [&](DType dtype, Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(a)),
                                  source.uniform(dtype, std::move(b))};
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"NHWC, same", pair(f64, {4, 8, 4, 4}, {3, 3, 4, 8}), by({.padding = Padding::kSame})},
      {"NCHW, padded", pair(f32, {4, 2, 8, 5}, {4, 2, 2, 3}),
       by({.padding = {{1, 0}, {0, 0}}, .layout = {"NCHW", "OIHW", "NCHW"}})},
      {"mixed layouts", pair(f64, {3, 4, 5, 2}, {2, 3, 3, 2}),
       by({.padding = {{1, 2}, {0, 1}}, .layout = {"CWHN", "HIOW", "WNHC"}})},
      {"strides", pair(f64, {2, 8, 6, 1}, {3, 3, 1, 2}),
       by({.strides = {2, 3}, .padding = Padding::kSame})},
      {"both dilated", pair(f64, {1, 4, 5, 2}, {2, 3, 2, 1}),
       by({.padding = {{1, 1}, {2, 0}}, .input_dilation = {2, 3}, .kernel_dilation = {3, 2}})},
      {"everything", pair(f64, {2, 7, 4}, {3, 2, 4}),
       by({.strides = {2},
           .padding = {{-1, 3}},
           .input_dilation = {2},
           .kernel_dilation = {2},
           .feature_groups = 2})},
      {"feature groups", pair(f64, {2, 6, 8}, {3, 2, 8}), by({.feature_groups = 4})},
      {"a kernel for each feature", pair(f64, {2, 4, 4, 4}, {3, 2, 1, 8}),
       by({.padding = Padding::kSame, .feature_groups = 4})},
      {"batch groups", pair(f64, {8, 5, 4}, {3, 4, 8}), by({.batch_groups = 4})},
      {"batch groups, strided", pair(f64, {4, 6, 3}, {2, 3, 4}),
       by({.strides = {2}, .padding = {{1, 1}}, .batch_groups = 2})},
      {"one by one", pair(f64, {2, 4, 4, 3}, {1, 1, 3, 4}), by({})},
      {"no spatial dimension", pair(f64, {4, 8}, {8, 4}), by({})},
      {"3 spatial dimensions", pair(f32, {1, 4, 3, 4, 2}, {2, 2, 3, 2, 4}),
       by({.padding = Padding::kSameLower})},
      {"integers",
       {source.uniform(DType::i32, {2, 6, 2}, -3, 3), source.uniform(DType::i32, {3, 2, 4}, -3, 3)},
       by({})},
      {"bf16", pair(DType::bf16, {2, 6, 4}, {3, 4, 4}), by({}), false},
      {"f32 and bf16",
       {source.uniform(f32, {2, 6, 4}), source.uniform(DType::bf16, {3, 4, 4})},
       by({}),
       false},
  };
}

std::vector<OpSample> cumulative_samples(SampleSource& source, Cumulative op, bool takes_bools) {
  auto along = [op](std::int64_t dimension, bool reverse = false) {
    return [=](std::span<const Tensor> x) { return op(x[0], dimension, reverse); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  std::vector<OpSample> samples{
      {"vector", {source.distinct(f64, {8})}, along(0)},
      {"rows", {source.distinct(f64, {4, 8})}, along(-1)},
      {"rows, reversed", {source.distinct(f64, {4, 8})}, along(1, true)},
      {"columns, uneven", {source.distinct(f64, {7, 4})}, along(0)},
      {"middle", {source.uniform(f32, {4, 5, 8})}, along(1)},
      {"one", {source.uniform(f64, {1, 4})}, along(0)},
      {"empty", {source.uniform(f32, {4, 0})}, along(1)},
      {"integers", {source.uniform(DType::i32, {4, 8}, -3, 3)}, along(1)},
  };
  if (takes_bools)
    samples.push_back({"bools", {source.uniform(DType::bool_, {8}, 0, 1)}, along(0)});
  return samples;
}

std::vector<OpSample> dot_general_samples(SampleSource& source) {
  auto by = [](DotDimensions dims, std::optional<DType> dtype = std::nullopt) {
    return [=](std::span<const Tensor> x) { return dot_general(x[0], x[1], dims, dtype); };
  };
  DType f32 = DType::f32, f64 = DType::f64, i8 = DType::i8;
  auto pair = [&](DType dtype, Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(dtype, a), source.uniform(dtype, b)};
  };
  DotDimensions matrices{.lhs_contracting = {1}, .rhs_contracting = {0}};
  return {
      {"matrices", pair(f64, {8, 4}, {4, 12}), by(matrices)},
      {"matrices f32", pair(f32, {8, 4}, {4, 12}), by(matrices)},
      {"bf16 into f32", pair(DType::bf16, {8, 4}, {4, 8}), by(matrices, f32), false},
      {"i8 into i32", pair(i8, {4, 8}, {8, 4}), by(matrices, DType::i32)},
      {"transposed", pair(f64, {4, 8}, {12, 4}),
       by({.lhs_contracting = {0}, .rhs_contracting = {1}})},
      {"batch", pair(f64, {4, 2, 8}, {4, 8, 3}),
       by({.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}})},
      {"batch inside", pair(f64, {2, 4, 8, 3}, {8, 3, 5, 4}),
       by({.lhs_contracting = {-1},
           .rhs_contracting = {1},
           .lhs_batch = {2, 1},
           .rhs_batch = {0, 3}})},
      {"two contracted, crossed", pair(f64, {4, 2, 8}, {8, 3, 4}),
       by({.lhs_contracting = {0, 2}, .rhs_contracting = {2, 0}})},
      {"vectors", pair(f64, {8}, {8}), by({.lhs_contracting = {0}, .rhs_contracting = {0}})},
      {"a row and heads", pair(f64, {1, 8}, {8, 4, 2}), by(matrices)},
      {"heads and a row", pair(f64, {4, 2, 2}, {1, 2, 4}),
       by({.lhs_contracting = {1, 0}, .rhs_contracting = {1, 2}})},
      {"a batch of one", pair(f64, {1, 4, 8}, {1, 4, 8, 2}),
       by({.lhs_contracting = {2},
           .rhs_contracting = {2},
           .lhs_batch = {0, 1},
           .rhs_batch = {0, 1}})},
      {"outer", pair(f64, {4}, {8}), by({})},
      {"only batch", pair(f32, {4, 8}, {4, 8}), by({.lhs_batch = {0, 1}, .rhs_batch = {0, 1}})},
      {"complex", pair(DType::c64, {8, 4}, {4, 8}), by(matrices)},
  };
}

std::vector<OpSample> cholesky_samples(SampleSource& source) {
  // x adjoint(x) + 2 is positive definite.
  auto of_product = [](bool upper) {
    return [=](std::span<const Tensor> x) {
      Tensor unit = eye(x[0].shape()[-1], std::nullopt, 0, x[0].dtype());
      return cholesky(add(matmul(x[0], adjoint(x[0])), multiply(unit, 2)), upper);
    };
  };
  auto of_complex = [](std::span<const Tensor> x) {
    Tensor z = complex(x[0], x[1]);
    Tensor unit = eye(4, std::nullopt, 0, DType::c128);
    Tensor l = cholesky(add(matmul(z, adjoint(z)), multiply(unit, 2)));
    return add(real(l), multiply(imag(l), 3));
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"matrix", {source.uniform(f64, {4, 4})}, of_product(false)},
      {"stack, upper", {source.uniform(f64, {4, 3, 3})}, of_product(true)},
      {"two stacks", {source.uniform(f32, {4, 2, 5, 5})}, of_product(false)},
      {"one", {source.uniform(f64, {1, 1})}, of_product(false)},
      {"c64", {source.uniform(DType::c64, {2, 4, 4})}, of_product(false)},
      {"c128", {source.uniform(f64, {4, 4}), source.uniform(f64, {4, 4})}, of_complex},
  };
}

std::vector<OpSample> eigh_samples(SampleSource& source) {
  auto values = [](std::span<const Tensor> x) { return eigvalsh(x[0]); };
  // The sign of an eigenvector is arbitrary, so the samples use squares.
  auto squares = [](std::span<const Tensor> x) {
    auto [w, v] = eigh(x[0]);
    return matmul(v * v, expand_dims(w * w, -1));
  };
  auto of_complex = [](std::span<const Tensor> x) {
    auto [w, v] = eigh(complex(x[0], x[1]));
    return matmul(real(v * conj(v)), expand_dims(w * w, -1));
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"values", {source.uniform(f64, {4, 4})}, values},
      {"stack, values", {source.uniform(f64, {2, 3, 3})}, values},
      {"vectors", {source.uniform(f64, {4, 4})}, squares},
      {"f32", {source.uniform(f32, {4, 4, 4})}, squares},
      {"c128", {source.uniform(f64, {3, 3}), source.uniform(f64, {3, 3})}, of_complex},
  };
}

std::vector<OpSample> qr_samples(SampleSource& source) {
  auto q_of = [](std::span<const Tensor> x) { return qr(x[0]).q; };
  auto r_of = [](std::span<const Tensor> x) { return qr(x[0]).r; };
  auto both = [](std::span<const Tensor> x) {
    auto [q, r] = qr(x[0]);
    return matmul(q * q, r * r);
  };
  auto complete = [](std::span<const Tensor> x) {
    auto [q, r] = qr(x[0], true);
    return matmul(q * q, r * r);
  };
  auto of_complex = [](std::span<const Tensor> x) {
    auto [q, r] = qr(complex(x[0], x[1]));
    Tensor product = matmul(q * q, r * r);
    return add(real(product), multiply(imag(product), 3));
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"square", {source.uniform(f64, {4, 4})}, both},
      {"tall, q", {source.uniform(f64, {6, 3})}, q_of},
      {"tall, r", {source.uniform(f64, {2, 5, 3})}, r_of},
      {"wide", {source.uniform(f64, {3, 5})}, both},
      {"wide, q", {source.uniform(f64, {2, 3, 4})}, q_of},
      {"wide, r", {source.uniform(f64, {2, 3, 4})}, r_of},
      {"f32", {source.uniform(f32, {2, 2, 4, 4})}, both},
      {"one", {source.uniform(f64, {1, 1})}, r_of},
      {"one row", {source.uniform(f64, {2, 1, 3})}, r_of},
      {"one column", {source.uniform(f64, {4, 1})}, both},
      {"complete", {source.uniform(f64, {4, 5, 3})}, complete, false},
      {"c128", {source.uniform(f64, {4, 3}), source.uniform(f64, {4, 3})}, of_complex},
  };
}

std::vector<OpSample> fft_samples(SampleSource& source) {
  // Complex operands and results are built from and split into real and imaginary parts.
  auto of_parts = [](FftKind kind, Dimensions lengths) {
    return [=](std::span<const Tensor> x) {
      Tensor y = fft(complex(x[0], x[1]), kind, lengths);
      return is_complex(y.dtype()) ? add(real(y), multiply(imag(y), 3)) : y;
    };
  };
  auto of_real = [](Dimensions lengths) {
    return [=](std::span<const Tensor> x) {
      Tensor y = fft(x[0], FftKind::kRfft, lengths);
      return add(real(y), multiply(imag(y), 3));
    };
  };
  auto plain = [](FftKind kind, Dimensions lengths) {
    return [=](std::span<const Tensor> x) { return fft(x[0], kind, lengths); };
  };
  auto parts = [&](Shape shape) {
    return std::vector<HostArray>{source.uniform(DType::f64, shape),
                                  source.uniform(DType::f64, shape)};
  };
  using enum FftKind;
  return {
      {"vector", parts({8}), of_parts(kFft, {8})},
      {"rows", parts({4, 6}), of_parts(kIfft, {6})},
      {"matrices", parts({4, 3, 4}), of_parts(kFft, {3, 4})},
      {"three dimensions", {source.uniform(DType::c64, {2, 4, 3, 4})}, plain(kFft, {4, 3, 4})},
      {"real", {source.uniform(DType::f64, {4, 8})}, of_real({8})},
      {"real, odd, two dimensions", {source.uniform(DType::f64, {4, 2, 5})}, of_real({2, 5})},
      {"real f32", {source.uniform(DType::f32, {4, 8})}, plain(kRfft, {8})},
      {"to real", parts({4, 5}), of_parts(kIrfft, {8})},
      {"to real, odd, two dimensions", parts({4, 2, 3}), of_parts(kIrfft, {2, 5})},
      {"one", parts({4, 1}), of_parts(kIrfft, {1})},
  };
}

std::vector<OpSample> reduce_window_samples(SampleSource& source,
                                            Tensor (*op)(In, Dimensions, WindowOptions)) {
  auto by = [op](Dimensions window, WindowOptions options = {}) {
    return [=](std::span<const Tensor> x) { return op(x[0], window, options); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"pooling",
       {source.distinct(f64, {2, 4, 8, 4})},
       by({1, 2, 2, 1}, {.strides = {1, 2, 2, 1}})},
      {"overlapping, same size",
       {source.distinct(f32, {4, 8})},
       by({1, 3}, {.padding = Padding::kSame})},
      {"overlapping", {source.distinct(f64, {8, 4})}, by({3, 1}, {.strides = {2, 1}})},
      {"padded", {source.distinct(f64, {5, 6})}, by({2, 3}, {.padding = {{1, 0}, {2, 1}}})},
      {"dilated window", {source.distinct(f64, {8, 4})}, by({3, 1}, {.window_dilation = {2, 1}})},
      {"dilated base",
       {source.distinct(f64, {4, 5})},
       by({2, 3}, {.strides = {1, 2}, .padding = {{0, 0}, {1, 1}}, .base_dilation = {1, 2}})},
      {"everything",
       {source.distinct(f64, {7})},
       by({3},
          {.strides = {4}, .padding = {{2, 3}}, .base_dilation = {2}, .window_dilation = {2}})},
      {"gaps that the windows skip",
       {source.distinct(f64, {9, 4})},
       by({2, 1}, {.strides = {4, 1}})},
      {"cut off", {source.distinct(f64, {8})}, by({2}, {.padding = {{-1, -2}}})},
      {"integers", {source.uniform(DType::i32, {4, 8}, -9, 9)}, by({1, 4}, {.strides = {1, 4}})},
      {"bytes", {source.uniform(DType::u8, {8}, 0, 9)}, by({2})},
      {"bf16", {source.distinct(DType::bf16, {4, 8})}, by({2, 2}), false},
      {"no window", {source.uniform(f64, {2, 4})}, by({3, 1})},
  };
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

std::vector<OpSample> number_samples(SampleSource& source, Tensor (*op)(In, DimensionList, bool)) {
  return {
      {"all of a vector", {source.distinct(DType::f64, {8})}, over(op, {})},
      {"rows", {source.distinct(DType::f64, {4, 8})}, over(op, 1)},
      {"columns, kept", {source.distinct(DType::f64, {4, 8})}, over(op, {0}, true)},
      {"outer two", {source.distinct(DType::f32, {4, 8, 4})}, over(op, {0, 2})},
      {"middle", {source.distinct(DType::f64, {4, 4, 8})}, over(op, 1)},
      {"f16", {source.uniform(DType::f16, {4, 8})}, over(op, -1), false},
      {"bf16", {source.uniform(DType::bf16, {8, 4})}, over(op, -1), false},
      {"i32", {source.uniform(DType::i32, {4, 8}, -3, 3)}, over(op, 0)},
      {"u8", {source.uniform(DType::u8, {4, 8}, 0, 9)}, over(op, 0)},
  };
}

std::vector<OpSample> extreme_samples(SampleSource& source, Tensor (*op)(In, DimensionList, bool)) {
  auto samples = number_samples(source, op);
  HostArray ties = HostArray::from_vector<float>({1, 2, 2, 0, 3, 3, 3, 1}, {2, 4});
  samples.push_back({"ties", {ties}, over(op, 1), false});
  HostArray odd = HostArray::from_vector<float>({1, NAN, 2, -INFINITY, INFINITY, 0}, {3, 2});
  samples.push_back({"NaN and infinity", {odd}, over(op, 0), false});
  samples.push_back({"u64", {source.uniform(DType::u64, {4}, 0, 9)}, over(op, 0)});
  samples.push_back({"empty result", {source.uniform(DType::f32, {0, 4})}, over(op, 1)});
  return samples;
}

std::vector<OpSample> bool_samples(SampleSource& source, Tensor (*op)(In, DimensionList, bool)) {
  return {
      {"all of a vector", {source.uniform(DType::bool_, {8})}, over(op, {})},
      {"rows", {source.uniform(DType::bool_, {8, 4})}, over(op, 1)},
      {"kept", {source.uniform(DType::bool_, {4, 8, 2})}, over(op, {0, 2}, true)},
      {"numbers", {source.uniform(DType::i32, {4, 8}, -1, 1)}, over(op, 0)},
      {"floats", {source.uniform(DType::f32, {4, 8})}, over(op, 0)},
      {"nothing", {source.uniform(DType::bool_, {4, 0})}, over(op, 1)},
  };
}

std::vector<OpSample> triangular_solve_samples(SampleSource& source) {
  // A well-conditioned matrix: the diagonal is far from zero.
  auto firm = [](const Tensor& a) {
    return add(a, multiply(eye(a.shape()[-1], std::nullopt, 0, a.dtype()), 5));
  };
  auto by = [firm](TriangularSolveOptions options) {
    return [=](std::span<const Tensor> x) { return triangular_solve(firm(x[0]), x[1], options); };
  };
  auto of_parts = [firm](TriangularSolveOptions options) {
    return [=](std::span<const Tensor> x) {
      Tensor solved = triangular_solve(firm(complex(x[0], x[1])), complex(x[2], x[3]), options);
      return add(real(solved), multiply(imag(solved), 3));
    };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  auto matrix = [&](Shape shape) { return source.uniform(f64, std::move(shape)); };
  using enum TransposeKind;
  return {
      {"lower", {matrix({4, 4}), matrix({4, 8})}, by({})},
      {"upper, right, transposed",
       {matrix({4, 4}), matrix({8, 4})},
       by({.left_side = false, .lower = false, .transpose = kTranspose})},
      {"stack, unit diagonal",
       {matrix({4, 3, 3}), matrix({4, 3, 2})},
       by({.unit_diagonal = true, .transpose = kTranspose})},
      {"right, lower", {matrix({4, 3, 3}), matrix({4, 2, 3})}, by({.left_side = false})},
      {"upper", {matrix({4, 4}), matrix({4, 1})}, by({.lower = false, .transpose = kAdjoint})},
      {"f32", {source.uniform(f32, {2, 4, 4}), source.uniform(f32, {2, 4, 4})}, by({})},
      {"complex", {matrix({3, 3}), matrix({3, 3}), matrix({3, 4}), matrix({3, 4})}, of_parts({})},
      {"complex, adjoint",
       {matrix({3, 3}), matrix({3, 3}), matrix({4, 3}), matrix({4, 3})},
       of_parts({.left_side = false, .lower = false, .transpose = kAdjoint})},
      {"complex, transposed",
       {matrix({3, 3}), matrix({3, 3}), matrix({3, 4}), matrix({3, 4})},
       of_parts({.transpose = kTranspose})},
  };
}

}  // namespace

const OpSampleTable& contraction_samples() {
  static const OpSampleTable table{
      {"convolution", convolution_samples},
      {"cumulative_sum",
       [](SampleSource& source) { return cumulative_samples(source, cumulative_sum, true); }},
      {"cumulative_prod",
       [](SampleSource& source) { return cumulative_samples(source, cumulative_prod, true); }},
      {"cumulative_max",
       [](SampleSource& source) { return cumulative_samples(source, cumulative_max, false); }},
      {"cumulative_min",
       [](SampleSource& source) { return cumulative_samples(source, cumulative_min, false); }},
      {"cumulative_logsumexp",
       [](SampleSource& source) {
         return cumulative_samples(source, cumulative_logsumexp, false);
       }},
      {"dot_general", dot_general_samples},
      {"cholesky", cholesky_samples},
      {"eigh", eigh_samples},
      {"qr", qr_samples},
      {"fft", fft_samples},
      {"reduce_window_sum",
       [](SampleSource& source) { return reduce_window_samples(source, reduce_window_sum); }},
      {"reduce_window_max",
       [](SampleSource& source) { return reduce_window_samples(source, reduce_window_max); }},
      {"reduce_window_min",
       [](SampleSource& source) { return reduce_window_samples(source, reduce_window_min); }},
      {"select_and_scatter_add", select_and_scatter_samples},
      {"sum",
       [](SampleSource& source) {
         auto samples = number_samples(source, sum);
         samples.push_back({"bools", {source.uniform(DType::bool_, {8, 4})}, over(sum, 0)});
         samples.push_back({"nothing", {source.uniform(DType::f32, {4, 0})}, over(sum, 1)});
         return samples;
       }},
      {"prod",
       [](SampleSource& source) {
         auto samples = number_samples(source, prod);
         HostArray zeros =
             HostArray::from_vector<double>({2, 0, 3, 0, 5, 0, 1, 2, 3, 4, 5, 6}, {4, 3});
         samples.push_back({"zeros", {zeros}, over(prod, 1)});
         samples.push_back(
             {"a zero among all", {HostArray::from_vector<double>({2, 0, 3, 4})}, over(prod, {})});
         samples.push_back({"bools", {source.uniform(DType::bool_, {8, 4})}, over(prod, 0)});
         samples.push_back({"nothing", {source.uniform(DType::f32, {4, 0})}, over(prod, 1)});
         return samples;
       }},
      {"max", [](SampleSource& source) { return extreme_samples(source, max); }},
      {"max_of_numbers",
       [](SampleSource& source) {
         auto samples = number_samples(source, max_of_numbers);
         HostArray ties = HostArray::from_vector<float>({1, 2, 2, 0, 3, 3, 3, 1}, {2, 4});
         samples.push_back({"ties", {ties}, over(max_of_numbers, 1), false});
         HostArray ends = HostArray::from_vector<float>({1, -INFINITY, INFINITY, 0}, {2, 2});
         samples.push_back({"infinities", {ends}, over(max_of_numbers, 0), false});
         return samples;
       }},
      {"min", [](SampleSource& source) { return extreme_samples(source, min); }},
      {"any", [](SampleSource& source) { return bool_samples(source, any); }},
      {"all", [](SampleSource& source) { return bool_samples(source, all); }},
      {"triangular_solve", triangular_solve_samples},
  };
  return table;
}

}  // namespace meshard
