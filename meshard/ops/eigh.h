#pragma once
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

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

}  // namespace meshard
