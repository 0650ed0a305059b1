// Linear algebra in the array API standard's names. Matrices are the last two dimensions; those
// before them are a batch, and broadcast.
#pragma once
#include <optional>

#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"
#include "meshard/ops/dimension_list.h"

namespace meshard {

/// The solutions of a x = b with square matrices, through the QR factors of `a`. A vector b (rank
/// 1) gives a vector. Integers and narrow floats are computed in f32.
/// @error `a` not square; sizes that do not go together.
Tensor solve(In a, In b);
/// The inverse matrices. Singular ones give infinities or NaN.
Tensor inv(In x);

/// The determinant as its sign and the logarithm of its magnitude, which does not overflow.
struct SignedLog {
  Tensor sign;       ///< 1, -1, or 0 for singular matrices
  Tensor logabsdet;  ///< -inf for singular matrices
  MESHARD_FIELDS(sign, logabsdet)
};
/// @error not square, complex numbers.
SignedLog slogdet(In x);
/// The determinant. Its derivative is the matrix of cofactors, at singular matrices too; second
/// derivatives at singular matrices are accurate up to size 8.
/// @error not square, complex numbers.
Tensor det(In x);

/// x multiplied by itself `n` times; the inverses' powers for negative n, the identity for 0.
/// @error not square.
Tensor matrix_power(In x, std::int64_t n);
/// The last two dimensions exchanged.
Tensor matrix_transpose(In x);

/// The elements [i, i + offset] of each matrix, as the last dimension.
Tensor diagonal(In x, std::int64_t offset = 0);
/// Their sum.
Tensor trace(In x, std::int64_t offset = 0);

/// The vector product of vectors of 3 elements along a dimension; the others broadcast.
/// @error the size is not 3.
Tensor cross(In a, In b, std::int64_t dimension = -1);
/// The sum of conj(a) * b along a dimension (counted from the last); the others broadcast.
Tensor vecdot(In a, In b, std::int64_t dimension = -1);

/// The norm of vectors along dimensions (all of them if left out): the sum of abs(x)**order, to the
/// power of 1 / order; the largest magnitude for infinity, the smallest for -infinity, the number
/// of elements that are not zero for 0. The derivative of the 2-norm at zero is zero.
Tensor vector_norm(In x, DimensionList dimensions = {}, bool keepdims = false, double order = 2);

/// Which norm matrix_norm gives.
enum class MatrixNorm : std::uint8_t {
  kFrobenius,
  kLargestColumnSum,   ///< 1 in the standard
  kSmallestColumnSum,  ///< -1
  kLargestRowSum,      ///< infinity
  kSmallestRowSum,     ///< -infinity
  kSpectral,           ///< 2: the largest singular value; of real matrices
};
Tensor matrix_norm(In x, bool keepdims = false, MatrixNorm norm = MatrixNorm::kFrobenius);

}  // namespace meshard
