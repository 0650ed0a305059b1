// Factorizations of matrices by LAPACK's routines, for programs of CPUs.
#pragma once
#include <vector>

#include "meshard/graph/tensor.h"
#include "meshard/ops/triangular_solve.h"

namespace meshard::internal {

// All take batches of matrices in f32, f64, c64 or c128 that are not empty. Matrices for which a
// routine fails, such as those with NaN, give NaN.

/// The factors in one matrix, the pivots, counted from 0, and the permutation and its sign.
std::vector<Tensor> lu_by_lapack(const Tensor& x);
/// The order of `size` rows after the exchanges of `pivots` [..., k], i32.
Tensor permutation_by_lapack(const Tensor& pivots, std::int64_t size);
/// q and r. @param complete q is square
std::vector<Tensor> qr_by_lapack(const Tensor& x, bool complete);
/// u, the singular values and vh; the values alone without `vectors`.
std::vector<Tensor> svd_by_lapack(const Tensor& x, bool full_matrices, bool vectors);
/// The eigenvalues, and with `vectors` the eigenvectors, of Hermitian matrices. Reads their lower
/// triangles.
std::vector<Tensor> eigh_by_lapack(const Tensor& x, bool vectors);
/// The complex eigenvalues, and with `vectors` the right eigenvectors of norm 1.
std::vector<Tensor> eig_by_lapack(const Tensor& x, bool vectors);
/// The Schur form and the Schur vectors.
std::vector<Tensor> schur_by_lapack(const Tensor& x);
/// The lower triangular factors.
Tensor cholesky_by_lapack(const Tensor& x);
Tensor triangular_solve_by_lapack(const Tensor& a, const Tensor& b,
                                  const TriangularSolveOptions& options);

}  // namespace meshard::internal
