// Linear algebra, named as in the array API standard. Matrices are the last two dimensions; those
// before them are batch dimensions and broadcast.
#pragma once

#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/dimension_list.h"
#include "meshard/ops/factorization.h"

namespace meshard {

/// Solves a x = b for square matrices, by the LU factors of `a`. A vector b (rank 1) gives a
/// vector. Integers and narrow floats are computed in f32.
/// @error `a` is not square; sizes that do not match.
Tensor solve(In a, In b);
/// The inverse matrices. Singular matrices give infinities or NaN.
Tensor inv(In x);

/// The determinant as sign and log magnitude, which does not overflow.
struct SignedLog {
  Tensor sign;       ///< of magnitude 1 (1 or -1 if real), or 0 for singular matrices
  Tensor logabsdet;  ///< -inf for singular matrices
  MESHARD_FIELDS(sign, logabsdet)
};
/// @error the matrices are not square.
SignedLog slogdet(In x);
/// The determinant. Its derivative is the cofactor matrix, also at singular matrices; second
/// derivatives at singular matrices are accurate up to size 8.
/// @error the matrices are not square.
Tensor det(In x);

/// The n-th matrix power of x; for negative n of the inverses, for 0 the identity.
/// @error the matrices are not square.
Tensor matrix_power(In x, std::int64_t n);
/// Transposes the last two dimensions.
Tensor matrix_transpose(In x);

/// The elements [i, i + offset] of each matrix, along the last dimension.
Tensor diagonal(In x, std::int64_t offset = 0);
/// The sum of the diagonal.
Tensor trace(In x, std::int64_t offset = 0);

/// The cross product of vectors of 3 elements along a dimension; the other dimensions broadcast.
/// @error the size is not 3.
Tensor cross(In a, In b, std::int64_t dimension = -1);
/// The sum of conj(a) * b along a dimension; the other dimensions broadcast. The dimension is
/// counted from the last.
Tensor vecdot(In a, In b, std::int64_t dimension = -1);

/// The p-norm of vectors along dimensions, by default all of them, with p = `order`. The sum of
/// abs(x)**order, to the power of 1 / order; for infinity the largest magnitude, for -infinity the
/// smallest, for 0 the number of nonzero elements. The derivative of the 2-norm at zero is zero.
Tensor vector_norm(In x, DimensionList dimensions = {}, bool keepdims = false, double order = 2);

/// The norm that matrix_norm computes.
enum class MatrixNorm : std::uint8_t {
  kFrobenius,
  kLargestColumnSum,   ///< order 1 in the standard
  kSmallestColumnSum,  ///< -1
  kLargestRowSum,      ///< infinity
  kSmallestRowSum,     ///< -infinity
  kSpectral,           ///< 2: the largest singular value
  kSmallestSingular,   ///< -2: the smallest singular value
  kNuclear,            ///< the sum of the singular values
};
Tensor matrix_norm(In x, bool keepdims = false, MatrixNorm norm = MatrixNorm::kFrobenius);

}  // namespace meshard

namespace meshard::linalg {

using meshard::cholesky;
using meshard::cross;
using meshard::det;
using meshard::diagonal;
using meshard::eigh;
using meshard::eigvalsh;
using meshard::inv;
using meshard::matmul;
using meshard::matrix_norm;
using meshard::matrix_power;
using meshard::matrix_transpose;
using meshard::qr;
using meshard::slogdet;
using meshard::solve;
using meshard::trace;
using meshard::vecdot;
using meshard::vector_norm;

}  // namespace meshard::linalg
