#pragma once
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The factors of x = q r.
struct Qr {
  Tensor q;  ///< orthonormal columns, [..., m, k] with k = min(m, n)
  Tensor r;  ///< upper triangular, [..., k, n]
  MESHARD_FIELDS(q, r)
};

/// The reduced QR factors of matrices, the last two dimensions, by Householder reflections.
/// Integers and narrow floats are computed in f32. The derivative is that of matrices whose first k
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
