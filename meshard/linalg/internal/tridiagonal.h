// Eigenvalues and eigenvectors of symmetric tridiagonal matrices, a share on each device.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard::linalg::distributed::internal {

/// A value: a symmetric tridiagonal matrix of n rows in f64, and bounds of its eigenvalues.
struct Tridiagonal {
  Tensor diagonal;   ///< [n]
  Tensor beside;     ///< [n]: elements (i, i + 1); the last one is 0
  Tensor low, high;  ///< of rank 0
};
/// With Gershgorin's bounds.
Tridiagonal tridiagonal(const Tensor& diagonal, const Tensor& beside);

/// The eigenvalues with these positions in ascending order, from 0, by bisection (W. Givens, 1954,
/// with the counts of LAPACK's xLAEBZ).
/// @param positions i32[k]
/// @return f64[k], within 4 ULPs of the matrix's norm
Tensor eigenvalues_at(const Tridiagonal& matrix, const Tensor& positions);

/// A vector for each of these eigenvalues by inverse iteration with partial pivoting (xSTEIN,
/// without its orthogonalization), of length 1. For a cluster of eigenvalues, the vectors are
/// independent vectors of its space: each starts from random numbers that depend on its position.
/// @return [n, k], rounded to `dtype`
Tensor eigenvectors_for(const Tridiagonal& matrix, const Tensor& eigenvalues,
                        const Tensor& positions, DType dtype);

}  // namespace meshard::linalg::distributed::internal
