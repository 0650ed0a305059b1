// Linear algebra beyond what <meshard/meshard.h> has: decompositions, least squares, functions of
// matrices. This header is included by programs that use it.
//
// Matrices are the last two dimensions; those before them are a batch. Integers and narrow floats
// are computed in f32. On CPUs, LAPACK computes decompositions (lapack/lapack.h says which
// library); elsewhere, and without LAPACK, loops of other ops do. Matrices with NaN or
// infinity give NaN.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/base/fields.h"
#include "meshard/ops/composite/linalg.h"
#include "meshard/ops/triangular_solve.h"

namespace meshard {

/// The factors of x = p l u.
struct Lu {
  Tensor p;  ///< a permutation of the rows, as a matrix, [..., m, m]
  Tensor l;  ///< lower triangular, ones on the diagonal, [..., m, k] with k = min(m, n)
  Tensor u;  ///< upper triangular, [..., k, n]
  MESHARD_FIELDS(p, l, u)
};
/// The LU factors of matrices, with partial pivoting. Their derivative needs linearly independent
/// first columns.
/// @error a rank below 2.
Lu lu(In x);

/// The LU factors of matrices in the form that lu_solve() takes.
struct LuFactors {
  Tensor lu;      ///< u, and below its diagonal l, [..., m, n]
  Tensor pivots;  ///< i32 [..., min(m, n)], from 0: row i was exchanged with row pivots[i]
  MESHARD_FIELDS(lu, pivots)
};
/// Like lu(), in the form of LAPACK's getrf. @error as lu()
LuFactors lu_factor(In x);

/// Solves op(a) x = b with the factors that lu_factor(a) has returned. A vector b (rank 1) gives a
/// vector; batches broadcast.
/// @error factors that are not square; sizes that do not match; pivots that are not integers.
Tensor lu_solve(In lu, In pivots, In b, TransposeKind transpose = TransposeKind::kNone);

/// The order of `size` rows after the exchanges of `pivots` [..., k], i32 [..., size].
/// @error pivots that are not integers; a size below k.
Tensor lu_pivots_to_permutation(In pivots, std::int64_t size);

/// As solve(a, b), with known factors lu_factor(a).lu and the permutation of their pivots
/// (lu_pivots_to_permutation). As functions of `a`, the factors have no derivative of their own: x
/// has that of solve(). With `transposed`, solves transpose(a) x = b.
/// @pre lu_factor(a) has returned the factors
/// @error operands of other shapes or dtypes than solve() passes: f32, f64 or complex, in one
/// batch.
Tensor factored_solve(In a, In lu, In permutation, In b, bool transposed = false);

/// Solves a x = b for Hermitian positive definite matrices, with their factor that cholesky(a) has
/// returned. A vector b (rank 1) gives a vector; batches broadcast.
/// @error `factor` is not square; sizes that do not match.
Tensor cholesky_solve(In factor, In b, bool upper = false);

/// The factors of x = u diag(s) vh.
struct Svd {
  Tensor u;   ///< orthonormal columns, [..., m, k] or [..., m, m]
  Tensor s;   ///< the singular values, real, descending, [..., min(m, n)]
  Tensor vh;  ///< orthonormal rows, [..., k, n] or [..., n, n]
  MESHARD_FIELDS(u, s, vh)
};
/// The singular value decomposition. With `full_matrices`, u and vh are square; by default k is
/// min(m, n). Derivatives of u and vh need distinct singular values; they are not defined for
/// square ones of a matrix that is not square.
/// @error a rank below 2; when differentiated, the case without a derivative.
Svd svd(In x, bool full_matrices = false);
/// The singular values only; their derivative does not need distinct ones.
Tensor svdvals(In x);

/// The eigenvalues and eigenvectors of square matrices: x v = v diag(w).
struct Eig {
  Tensor eigenvalues;   ///< w, complex, in no order, [..., n]
  Tensor eigenvectors;  ///< the columns of v, complex, of norm 1, [..., n, n]
  MESHARD_FIELDS(eigenvalues, eigenvectors)
};
/// Eigenvalues of matrices that need not be symmetric. Without LAPACK it takes n^4 operations. The
/// derivative needs distinct eigenvalues; that of
/// the eigenvectors keeps their norm, and holds for functions that do not depend on their phase.
/// @error the matrices are not square.
Eig eig(In x);
/// The eigenvalues only. @error as eig()
Tensor eigvals(In x);

/// The factors of x = z t adjoint(z).
struct Schur {
  Tensor t;  ///< upper triangular; of real matrices with blocks of 2 x 2 for pairs of eigenvalues
  Tensor z;  ///< unitary
  MESHARD_FIELDS(t, z)
};
/// The Schur form of square matrices; a complex one of real matrices if `complex_form`. Without
/// LAPACK it takes n^4 operations. It has no derivative.
/// @error the matrices are not square; when compiled without LAPACK, a real form.
Schur schur(In x, bool complex_form = false);

/// The least squares solution, and what it was computed from.
struct Lstsq {
  Tensor x;          ///< [..., n, k], or [..., n] for a vector b
  Tensor residuals;  ///< the squared norms of b - a x by column, [..., k] ([...] for a vector b)
  Tensor rank;       ///< i32 [...]
  Tensor s;          ///< the singular values of a, [..., min(m, n)]
  MESHARD_FIELDS(x, residuals, rank, s)
};
/// The x of least norm among those that minimize the norm of b - a x. A vector b has rank 1.
/// Singular values of at most `rtol` times the largest count as zero; by default that is max(m, n)
/// times the machine epsilon. The derivative keeps the rank.
/// @error the numbers of rows differ.
Lstsq lstsq(In a, In b, std::optional<double> rtol = std::nullopt);

/// The Moore-Penrose inverse. Singular values of at most `rtol` times the largest count as zero, by
/// default max(m, n) times the machine epsilon; `hermitian` matrices are decomposed by eigh(). The
/// derivative keeps the rank (G. H. Golub and V. Pereyra, 1973).
/// @error a rank below 2; for `hermitian` matrices that are not square.
Tensor pinv(In x, std::optional<double> rtol = std::nullopt, bool hermitian = false);
/// `inverse`, the pseudo-inverse of `x`, as a function of x: with the derivative of pinv().
/// @pre `inverse` is the pseudo-inverse of x
/// @error another shape or dtype than the inverse has: f32, f64 or complex.
Tensor pseudo_inverse(In x, In inverse);
/// The number of singular values above `rtol` times the largest, i32; by default max(m, n) times
/// the machine epsilon. @error a rank below 2
Tensor matrix_rank(In x, std::optional<double> rtol = std::nullopt);

/// The condition numbers: the norm of x times that of its inverse. With kSpectral and
/// kSmallestSingular by the singular values.
/// @error matrices that are not square, except for these two.
Tensor cond(In x, MatrixNorm norm = MatrixNorm::kSpectral);

/// Solves tensordot(a, x, x.ndim) = b for the tensor x, with a of the shape b.shape + x.shape.
/// @error b has more dimensions than a; the product of the dimensions of b differs from that of the
/// others.
Tensor tensorsolve(In a, In b);

/// The exponential of square matrices, by scaling, squaring and a rational approximation (N. J.
/// Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
/// @error the matrices are not square.
Tensor expm(In x);
/// The principal square root of square matrices, complex, by the Schur form (A. Bjorck and
/// S. Hammarling, A Schur method for the square root of a matrix, 1983). Singular matrices may have
/// none, which gives infinities or NaN.
/// @error the matrices are not square.
Tensor sqrtm(In x);
/// The principal logarithm of square matrices, complex: square roots of the Schur form, and a
/// rational approximation near the identity (N. J. Higham, Functions of Matrices, 2008, chapter
/// 11). Singular matrices give infinities or NaN.
/// @error the matrices are not square.
Tensor logm(In x);

}  // namespace meshard

namespace meshard::linalg {

using meshard::cholesky_solve;
using meshard::cond;
using meshard::eig;
using meshard::eigvals;
using meshard::expm;
using meshard::logm;
using meshard::lstsq;
using meshard::lu;
using meshard::lu_factor;
using meshard::lu_pivots_to_permutation;
using meshard::lu_solve;
using meshard::matrix_rank;
using meshard::pinv;
using meshard::schur;
using meshard::sqrtm;
using meshard::svd;
using meshard::svdvals;
using meshard::tensorsolve;

}  // namespace meshard::linalg
