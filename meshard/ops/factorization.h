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

/// The eigenvalues and eigenvectors of x = v diag(w) v^T.
struct Eigh {
  Tensor eigenvalues;   ///< w, ascending, [..., n]
  Tensor eigenvectors;  ///< the columns of v, orthonormal, [..., n, n]
  MESHARD_FIELDS(eigenvalues, eigenvectors)
};

/// The eigenvalues and eigenvectors of real symmetric matrices, the last two dimensions. Computed
/// by Jacobi rotations, in f64 accurate to about 9 digits. Integers and narrow floats are computed
/// in f32. An input that is not symmetric is replaced by (x + x^T) / 2. The derivative of the
/// eigenvectors needs distinct eigenvalues.
/// @error the matrices are not square; complex numbers.
Eigh eigh(In x);
/// The eigenvalues only; their derivative does not need distinct eigenvalues.
Tensor eigvalsh(In x);

/// The factors of x = q r.
struct Qr {
  Tensor q;  ///< orthonormal columns, [..., m, k] with k = min(m, n)
  Tensor r;  ///< upper triangular, [..., k, n]
  MESHARD_FIELDS(q, r)
};

/// The reduced QR factors of matrices, the last two dimensions, by Householder reflections.
/// Integers and narrow floats are computed in f32. The derivative assumes that the first k
/// columns are linearly independent.
/// @error a rank below 2; complex numbers.
Qr qr(In x);

/// The QR factors of square matrices and the determinant of q, 1 or -1. Used by det().
struct SignedQr {
  Tensor q, r, sign;
  MESHARD_FIELDS(q, r, sign)
};
SignedQr signed_qr(In x);

/// r with a small number added to each zero on its diagonal. The derivative of the determinant, a
/// polynomial, is then that of a nearby regular matrix. The derivative of signed_qr uses it if its
/// sign has a cotangent, which happens only in det().
Tensor regular_factor(const Tensor& r);

}  // namespace meshard
