// Factorizations of matrices by loops of other ops, for platforms without LAPACK.
#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::internal {

// Operands and results are defined in by_lapack.h.

/// Gaussian elimination with partial pivoting, a column at a time. Pivots are the elements with the
/// largest |re| + |im|, as in LAPACK.
std::vector<Tensor> lu_by_loops(const Tensor& x);
Tensor permutation_by_loops(const Tensor& pivots, std::int64_t size);
/// Householder reflections (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition,
/// algorithm 5.2.1), a column at a time.
std::vector<Tensor> qr_by_loops(const Tensor& x, bool complete);
/// One-sided Jacobi rotations of the columns of the adjoint of R, for x = QR (J. Demmel and
/// K. Veselic, Jacobi's method is more accurate than QR, 1992).
std::vector<Tensor> svd_by_loops(const Tensor& x, bool full_matrices, bool vectors);
/// Cyclic Jacobi rotations (Golub and Van Loan, section 8.5).
std::vector<Tensor> eigh_by_loops(const Tensor& x, bool vectors);

/// The complex Schur form of complex matrices by QR steps of the whole matrix with Wilkinson's
/// shifts (Golub and Van Loan, section 7.5): n^4 operations.
std::vector<Tensor> schur_by_loops(const Tensor& x);
/// Eigenvalues and eigenvectors by the Schur form.
std::vector<Tensor> eig_by_loops(const Tensor& x, bool vectors);

}  // namespace meshard::internal
