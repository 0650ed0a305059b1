#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The lower triangular matrices L with x = L adjoint(L), of symmetric (Hermitian) positive
/// definite matrices, the last two dimensions; with `upper` the upper triangular ones U with x =
/// adjoint(U) U. Integers and narrow floats are computed in f32. What is not symmetric counts by
/// its mean, (x + adjoint(x)) / 2. Matrices that are not positive definite give NaN.
/// @error not square.
Tensor cholesky(In x, bool upper = false);

}  // namespace meshard
