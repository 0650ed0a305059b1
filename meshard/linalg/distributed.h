// Factorizations of matrices that are spread over a two-dimensional grid of devices, each of which
// holds a part only.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "meshard/mesh/mesh.h"
#include "meshard/ops/factorization.h"

namespace meshard::linalg::distributed {

/// A value: the grid of devices over which matrices are spread. Rows are split over one axis of a
/// mesh, columns over another; the matrices are replicated over the mesh's other axes.
struct MatrixGrid {
  MatrixGrid(Mesh of, std::string rows_over, std::string columns_over)
      : mesh(std::move(of)), rows(std::move(rows_over)), columns(std::move(columns_over)) {}
  Mesh mesh;
  std::string rows, columns;
  /// The number of columns that one device contributes to a panel, which is factored at once. 0
  /// (default): such that a matrix has about 16 panels.
  std::int64_t block = 0;
};

// Each function takes a matrix of rank 2 with any placement and gives matrices that are split as
// P(rows, columns). Inside, rows and columns are dealt out in blocks, so that all devices work to
// the end. They are meant for matrices that do not fit on one device: what a device holds at a time
// is a few times its share of the matrix, plus panels of n times the panel's width. Numbers are
// f32, f64, or, for cholesky(), complex; narrower floats and integers are computed in f32. Sizes
// that the grid does not divide are padded inside.
//
// With pr x pc devices, panels of w columns, and elements of e bytes, a device receives about the
// bytes that are stated, for an n x n matrix: those of ScaLAPACK's algorithms (Blackford et al.,
// ScaLAPACK Users' Guide, 1997, chapter 5), and 4 e n^2 / (pr pc) for dealing out the matrix and
// taking back the result.

/// The lower triangular Cholesky factor L of a symmetric (Hermitian) positive definite matrix: x =
/// L adjoint(L). Only its lower triangle is read. As PDPOTRF: for each panel, its diagonal block is
/// factored on every device, the rows below are solved for, a part on each device, and gathered
/// along the grid's rows and columns (e m w (1/pr + 1/pc)). A matrix that is not positive definite
/// gives NaN, from the panel on where that is found.
/// @error the matrix is not square, or of another rank; an axis that the mesh does not have, or one
/// axis for both; a block below 0
Tensor cholesky(In x, const MatrixGrid& grid);

/// The reduced QR factors of an [m, n] matrix by Householder reflections: q [m, k] and r [k, n], k
/// = min(m, n). As PDGEQRF and PDORGQR: panels are factored column by column, with two sums over
/// all devices for each column; then their reflections are applied together (Schreiber and Van
/// Loan, 1989), with a gather along the grid's rows and a sum along its columns.
/// @error the errors of cholesky(), except that x need not be square; complex numbers;
/// unimplemented: a derivative
Qr qr(In x, const MatrixGrid& grid);

/// The eigenvalues, ascending, and eigenvectors of a real symmetric matrix, of which (x + x^T) / 2
/// is taken. As PDSYEVX: the matrix is reduced to a tridiagonal one by panels (Dongarra and van de
/// Geijn, 1992); each device finds its share of the eigenvalues by bisection and of the
/// eigenvectors by inverse iteration, in f64; these are made orthonormal by qr(), which gives
/// clusters of eigenvalues a basis; then the reflections are applied to them. The derivative of the
/// eigenvectors needs distinct eigenvalues.
/// @error as cholesky(); complex numbers
Eigh eigh(In x, const MatrixGrid& grid);

}  // namespace meshard::linalg::distributed
