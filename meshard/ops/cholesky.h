#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The Cholesky factors of symmetric (Hermitian) positive definite matrices, the last two
/// dimensions. The lower triangular L with x = L adjoint(L), or with `upper` the upper triangular U
/// with x = adjoint(U) U. Integers and narrow floats are computed in f32. An input that is not
/// symmetric is replaced by (x + adjoint(x)) / 2. Matrices that are not positive definite give NaN.
/// @error the matrices are not square.
Tensor cholesky(In x, bool upper = false);

}  // namespace meshard
