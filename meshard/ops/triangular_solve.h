#pragma once

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// The operation op applied to the triangular matrix first.
enum class TransposeKind : std::uint8_t {
  kNone,
  kTranspose,
  kAdjoint,  ///< transposed and conjugated
};

template <>
struct EnumNames<TransposeKind> {
  static constexpr EnumName<TransposeKind> kNames[] = {{TransposeKind::kNone, "none"},
                                                       {TransposeKind::kTranspose, "transpose"},
                                                       {TransposeKind::kAdjoint, "adjoint"}};
};

/// Options of triangular_solve().
struct TriangularSolveOptions {
  bool left_side = true;       ///< solves op(a) x = b; otherwise x op(a) = b
  bool lower = true;           ///< reads a's lower triangle; otherwise its upper one
  bool unit_diagonal = false;  ///< assumes ones on a's diagonal and does not read it
  TransposeKind transpose = TransposeKind::kNone;
  MESHARD_FIELDS(left_side, lower, unit_diagonal, transpose)
};

/// Solves op(a) x = b for triangular matrices, the last two dimensions of each. The dimensions
/// before these are equal. The other triangle of `a` is not read. dtypes are promoted; integers and
/// narrow floats are computed in f32.
/// @error `a` is not square; sizes that do not match.
Tensor triangular_solve(In a, In b, TriangularSolveOptions options = {});

}  // namespace meshard
