// Matrices, and the errors of their factorizations.
#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "meshard/graph/leaf.h"
#include "meshard/linalg/distributed.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::linalg::distributed {

inline Mesh grid_mesh(std::int64_t rows, std::int64_t columns) {
  return Mesh({{"rows", rows}, {"columns", columns}});
}

inline Tensor random_matrix(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32) {
  if (is_complex(dtype)) return complex(random_matrix(rows, columns), random_matrix(rows, columns));
  return from_host(random::normal(random::key(48), {rows, columns}, dtype).to_host());
}

inline Tensor on_host(const Tensor& x) { return from_host(x.to_host()); }
inline Tensor adjoint_of(const Tensor& x) { return conj(matrix_transpose(x)); }
inline double norm_of(const Tensor& x) {
  return vector_norm(astype(abs(x), DType::f64)).item<double>();
}

/// In units of epsilon * n, relative to `whole`.
inline double error_of(const Tensor& difference, const Tensor& whole) {
  const bool wide = real(whole).dtype() == DType::f64;
  const double epsilon =
      wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return norm_of(difference) / norm_of(whole) / epsilon / static_cast<double>(whole.dim(-1));
}

/// A backward stable algorithm's bound (Higham, Accuracy and stability, 2002), as LAPACK's tests.
inline constexpr double kMost = 30;

}  // namespace meshard::linalg::distributed
