// Factorizations of matrices.
#pragma once
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The Cholesky factors of symmetric (Hermitian) positive definite matrices, the last two
/// dimensions. The lower triangular L with x = L adjoint(L), or with `upper` the upper triangular U
/// with x = adjoint(U) U. Integers and narrow floats are computed in f32. An input that is not
/// symmetric is replaced by (x + adjoint(x)) / 2. Matrices that are not positive definite give NaN.
/// @error the matrices are not square.
Tensor cholesky(In x, bool upper = false);

/// The eigenvalues and eigenvectors of x = v diag(w) adjoint(v).
struct Eigh {
  Tensor eigenvalues;   ///< w, real, ascending, [..., n]
  Tensor eigenvectors;  ///< the columns of v, orthonormal, [..., n, n]
  MESHARD_FIELDS(eigenvalues, eigenvectors)
};

/// The eigenvalues and eigenvectors of symmetric (Hermitian) matrices, the last two dimensions.
/// Integers and narrow floats are computed in f32. An input that is not symmetric is replaced by
/// (x + adjoint(x)) / 2. The derivative of the eigenvectors needs distinct eigenvalues; of complex
/// matrices it holds for functions that do not depend on their phases.
/// @error the matrices are not square.
Eigh eigh(In x);
/// The eigenvalues only; their derivative does not need distinct eigenvalues.
Tensor eigvalsh(In x);

/// The factors of x = q r.
struct Qr {
  Tensor q;  ///< orthonormal columns, [..., m, k] with k = min(m, n)
  Tensor r;  ///< upper triangular (trapezoidal), [..., k, n]
  MESHARD_FIELDS(q, r)
};

/// The QR factors of matrices, the last two dimensions; with `complete`, q is square, [..., m, m].
/// Integers and narrow floats are computed in f32. The derivative assumes that the first k columns
/// are linearly independent.
/// @error a rank below 2; when differentiated, a square q of a matrix with more rows than columns.
Qr qr(In x, bool complete = false);

}  // namespace meshard
