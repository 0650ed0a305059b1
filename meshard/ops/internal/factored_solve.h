// Solutions of linear equations by LU factors, for solve() and inv().
#pragma once
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::internal {

/// The LU factors of matrices.
struct SignedLu {
  Tensor lu;           ///< u, and below its diagonal l
  Tensor pivots;       ///< i32 [..., k], from 0
  Tensor permutation;  ///< i32 [..., m]: the rows of x in this order are l u
  Tensor sign;         ///< the determinant of the permutation, 1 or -1
};
/// @pre matrices in a dtype that for_factors() returns
SignedLu signed_lu(const Tensor& x);

/// `u` with a small number added to each zero on its diagonal. The derivative of the determinant, a
/// polynomial, is then that of a nearby regular matrix. The derivative of signed_lu() uses it if
/// its sign has a cotangent, which happens only in det().
Tensor regular_factor(const Tensor& u);

/// Solves a x = b. @pre matrices of one dtype and batch, `a` square
Tensor solve_by_lu(const Tensor& a, const Tensor& b);

}  // namespace meshard::internal
