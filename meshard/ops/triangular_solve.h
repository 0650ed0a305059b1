#pragma once
#include <array>
#include <string_view>
#include <utility>

#include "meshard/graph/tensor.h"

namespace meshard {

/// What is done to the triangular matrix first.
enum class TransposeKind : std::uint8_t {
  kNone,
  kTranspose,
  kAdjoint,  ///< transposed and conjugated
};

template <>
struct EnumNames<TransposeKind> {
  static constexpr std::array kNames{
      std::pair{TransposeKind::kNone, std::string_view("none")},
      std::pair{TransposeKind::kTranspose, std::string_view("transpose")},
      std::pair{TransposeKind::kAdjoint, std::string_view("adjoint")}};
};

/// Which equations triangular_solve solves.
struct TriangularSolveOptions {
  bool left_side = true;       ///< op(a) x = b; else x op(a) = b
  bool lower = true;           ///< a's lower triangle counts; else its upper one
  bool unit_diagonal = false;  ///< a's diagonal is ones, whatever is there
  TransposeKind transpose = TransposeKind::kNone;
  MESHARD_FIELDS(left_side, lower, unit_diagonal, transpose)
};

/// The solutions x of op(a) x = b for triangular matrices, the last two dimensions of each; the
/// dimensions before these are equal. What is in the other triangle of `a` does not count. dtypes
/// are promoted; integers and narrow floats are computed in f32.
/// @error `a` not square; sizes that do not go together.
Tensor triangular_solve(In a, In b, TriangularSolveOptions options = {});

}  // namespace meshard
