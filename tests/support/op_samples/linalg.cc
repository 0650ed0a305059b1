// Samples of the ops of linalg.h.
#include "meshard/ops/linalg.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/element_wise.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
namespace {

const DType kF32 = DType::f32, kF64 = DType::f64;

using Call = std::function<Tensor(std::span<const Tensor>)>;

// A real number that depends on both parts.
Tensor parts_of(const Tensor& x) {
  return is_complex(x.dtype()) ? add(real(x), multiply(imag(x), 3)) : x;
}

// Regular matrices: their eigenvalues are near 4, 5, ...
Tensor regular(const Tensor& x) {
  Tensor steps = arange(4, 4 + x.dim(-1), 1, x.dtype());
  return x * element_wise::literal(0.25, x) +
         where(eye(x.dim(-1), std::nullopt, 0, DType::bool_), steps, zeros_like(x));
}

Call of_complex(Call call) {
  return [call = std::move(call)](std::span<const Tensor> x) {
    const Tensor z[] = {complex(x[0], x[1])};
    return parts_of(call(z));
  };
}

std::vector<OpSample> lu_samples(SampleSource& source) {
  auto factors = [](std::span<const Tensor> x) { return linalg::lu_factor(x[0]).lu; };
  auto product = [](std::span<const Tensor> x) {
    auto [p, l, u] = linalg::lu(x[0]);
    return matmul(matmul(p, l * l), u * u);
  };
  return {
      {"square", {source.distinct(kF64, {4, 4}, 0.5)}, product},
      {"tall", {source.distinct(kF64, {2, 5, 3})}, factors},
      {"wide", {source.distinct(kF64, {3, 5}, 0.5)}, factors},
      {"determinant",
       {source.uniform(kF64, {4, 9, 9})},
       [](std::span<const Tensor> x) { return det(regular(x[0])); }},
      {"c128", {source.uniform(kF64, {4, 4}), source.uniform(kF64, {4, 4})}, of_complex(factors)},
  };
}

std::vector<OpSample> permutation_samples(SampleSource& source) {
  auto of_size = [](std::int64_t size) {
    return [size](std::span<const Tensor> x) {
      return linalg::lu_pivots_to_permutation(linalg::lu_factor(x[0]).pivots, size);
    };
  };
  return {
      {"square", {source.uniform(kF32, {4, 4, 4})}, of_size(4), false},
      {"tall", {source.uniform(kF32, {5, 3})}, of_size(5), false},
      {"more rows", {source.uniform(kF64, {2, 2, 3, 3})}, of_size(6), false},
  };
}

std::vector<OpSample> solve_samples(SampleSource& source) {
  auto solution = [](std::span<const Tensor> x) { return solve(regular(x[0]), x[1]); };
  return {
      {"batch", {source.uniform(kF64, {4, 3, 3}), source.uniform(kF64, {4, 3, 2})}, solution},
      {"vector", {source.uniform(kF32, {2, 4, 4}), source.uniform(kF32, {4})}, solution},
      {"inverse of c128",
       {source.uniform(kF64, {3, 3}), source.uniform(kF64, {3, 3})},
       of_complex([](std::span<const Tensor> x) { return inv(regular(x[0])); })},
  };
}

std::vector<OpSample> svd_samples(SampleSource& source) {
  auto values = [](std::span<const Tensor> x) { return linalg::svdvals(x[0]); };
  // The signs of singular vectors are arbitrary, so the samples use squares.
  auto squares = [](std::span<const Tensor> x) {
    auto [u, s, vh] = linalg::svd(x[0]);
    Tensor left = real(multiply(u, conj(u))), right = real(multiply(vh, conj(vh)));
    return matmul(left * expand_dims(s, -2), right);
  };
  auto all = [](std::span<const Tensor> x) {
    auto [u, s, vh] = linalg::svd(x[0], true);
    return sum(u * u, -1);
  };
  return {
      {"values of a stack", {source.uniform(kF64, {4, 2, 3})}, values},
      {"tall", {source.uniform(kF64, {2, 5, 3})}, squares},
      {"wide", {source.uniform(kF64, {3, 5})}, squares},
      {"square matrices", {source.uniform(kF64, {4, 5, 3})}, all, false},
      {"c128", {source.uniform(kF64, {4, 3}), source.uniform(kF64, {4, 3})}, of_complex(squares)},
  };
}

std::vector<OpSample> eig_samples(SampleSource& source) {
  auto values = [](std::span<const Tensor> x) {
    Tensor w = linalg::eigvals(regular(x[0]));
    return sum(parts_of(w * w * w), -1);
  };
  auto vectors = [](std::span<const Tensor> x) {
    auto [w, v] = linalg::eig(regular(x[0]));
    return sum(real(v * conj(v)) * expand_dims(real(w), -2), -1);
  };
  return {
      {"stack, values", {source.uniform(kF64, {4, 3, 3})}, values},
      {"vectors", {source.uniform(kF64, {4, 4})}, vectors},
      {"c128", {source.uniform(kF64, {3, 3}), source.uniform(kF64, {3, 3})}, of_complex(vectors)},
  };
}

std::vector<OpSample> schur_samples(SampleSource& source) {
  auto product = [](std::span<const Tensor> x) {
    auto [t, z] = linalg::schur(x[0]);
    return matmul(z, t);
  };
  return {
      {"complex, f64", {source.uniform(DType::c128, {4, 4, 4})}, product, false},
      {"complex", {source.uniform(DType::c64, {2, 3, 3})}, product, false},
  };
}

Call scaled(Tensor (*function)(In)) {
  return [function](std::span<const Tensor> x) {
    return parts_of(function(regular(x[0]) * element_wise::literal(0.25, x[0])));
  };
}

std::vector<OpSample> function_samples(SampleSource& source, Tensor (*function)(In)) {
  return {
      {"batch", {source.uniform(kF64, {4, 3, 3})}, scaled(function)},
      {"c128",
       {source.uniform(kF64, {3, 3}), source.uniform(kF64, {3, 3})},
       of_complex(scaled(function))},
  };
}

std::vector<OpSample> pseudo_inverse_samples(SampleSource& source) {
  auto inverse = [](std::span<const Tensor> x) { return linalg::pinv(x[0]); };
  return {
      {"tall", {source.uniform(kF64, {4, 5, 3})}, inverse},
      {"wide", {source.uniform(kF64, {2, 4})}, inverse},
      {"least squares",
       {source.uniform(kF64, {5, 3}), source.uniform(kF64, {5, 2})},
       [](std::span<const Tensor> x) { return linalg::lstsq(x[0], x[1]).x; }},
      {"c128", {source.uniform(kF64, {4, 3}), source.uniform(kF64, {4, 3})}, of_complex(inverse)},
  };
}

}  // namespace

const OpSampleTable& linalg_samples() {
  static const auto& table = *new OpSampleTable{
      {"lu", lu_samples},
      {"lu_pivots_to_permutation", permutation_samples},
      {"factored_solve", solve_samples},
      {"svd", svd_samples},
      {"eig", eig_samples},
      {"schur", schur_samples},
      {"expm", [](SampleSource& source) { return function_samples(source, linalg::expm); }},
      {"sqrtm", [](SampleSource& source) { return function_samples(source, linalg::sqrtm); }},
      {"logm", [](SampleSource& source) { return function_samples(source, linalg::logm); }},
      {"pseudo_inverse", pseudo_inverse_samples},
  };
  return table;
}

}  // namespace meshard
