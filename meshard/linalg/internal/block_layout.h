// How a matrix is dealt out over a grid of devices in blocks, and the steps that all factorizations
// have in common.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "meshard/linalg/distributed.h"

namespace meshard::linalg::distributed::internal {

/// A value: the layout of matrices over a grid of pr x pc devices.
///
/// An index along rows or columns has the digits (panel, c, r, t), of sizes L, pc, pr and `block`.
/// The device at (r, c) holds the rows with its digit r and the columns with its digit c, in order.
/// Rows with both of its digits are a p-th of all rows, which makes a third layout ("own rows"):
/// gathered along the grid's columns, they are the device's rows; along its rows, the device's
/// columns, as an index of columns. A panel has all rows or columns with one first digit.
struct BlockLayout {
  std::string_view rows, columns;  ///< the axes
  std::int64_t pr = 1, pc = 1, block = 1;

  /// Rows or columns of a panel: on all devices, and on one device as rows and as columns.
  std::int64_t panel() const { return pr * pc * block; }
  std::int64_t panel_rows() const { return pc * block; }
  std::int64_t panel_columns() const { return pr * block; }
  /// The number of panels that a local matrix has.
  std::int64_t panels_of_rows(const Tensor& local) const { return local.dim(0) / panel_rows(); }
  std::int64_t panels_of_columns(const Tensor& local) const {
    return local.dim(1) / panel_columns();
  }

  // All of these are for local values, inside of the manual region.

  /// From contiguous parts, P(rows, columns), to this layout, and back.
  /// @pre both numbers of panels are multiples of pr and pc
  Tensor dealt(const Tensor& local) const;
  Tensor contiguous(const Tensor& local) const;

  /// The first panel of columns of a local matrix, as own rows with all columns of the panel.
  Tensor panel_as_own_rows(const Tensor& local) const;
  /// Own rows [panels * block, k] as the device's rows [panels * panel_rows, k], and as its
  /// columns' index [panels * panel_columns, k].
  Tensor as_rows(const Tensor& own) const;
  Tensor as_columns(const Tensor& own) const;
  /// Own rows from rows that all devices along the grid's columns have.
  Tensor own_of_rows(const Tensor& rows_of_device) const;
  /// This device's part of a panel's columns, dimension 1.
  Tensor own_columns(const Tensor& all) const;
  /// Of a matrix [panel, k], the same on all devices, the device's rows.
  Tensor own_part(const Tensor& all) const;

  /// The index in the matrix, from 0, of each own row, of the device's rows and of its columns,
  /// i32.
  Tensor index_of_own_rows(std::int64_t panels) const;
  Tensor index_of_rows(std::int64_t panels) const;
  Tensor index_of_columns(std::int64_t panels) const;
};

/// A matrix that was padded, and how.
struct Prepared {
  BlockLayout layout;
  Tensor matrix;  ///< [rows, columns], padded with zeros
};

/// What a factorization takes.
struct Takes {
  bool square = false, complex = false;
};
/// Checks the matrix and the grid, promotes the dtype, and pads.
/// @error as the public functions, which `op` names
Prepared prepared(std::string_view op, In x, const MatrixGrid& grid, Takes takes);
/// The result of a computation on a prepared matrix, in the dtype of `x` if that is a narrow float.
Tensor result_of(In x, const Tensor& result);

/// (x + adjoint(x)) / 2.
Tensor symmetric(const Tensor& x);
/// A power of 2 that is at most twice, and more than, the largest magnitude; 1 for zeros. NaN and
/// infinity give NaN.
Tensor scale_of(const Tensor& x);

/// Runs a function on the layout's local matrices. `body` gets and returns local matrices in this
/// layout, which come from and become P(rows, columns) matrices.
/// @param replicated the number of results at the end that are the same on all devices, and stay
/// as they are
std::vector<Tensor> on_grid(const MatrixGrid& grid, const BlockLayout& layout, const Tensor& matrix,
                            const std::function<std::vector<Tensor>(const Tensor&)>& body,
                            std::size_t results, std::size_t replicated = 0);

/// The first rows and columns of a result, split over the grid.
Tensor corner_of(const Tensor& x, std::int64_t rows, std::int64_t columns, const MatrixGrid& grid);
/// The rows, and the columns, from `start` on.
Tensor rest_of(const Tensor& x, std::int64_t row, std::int64_t column);

}  // namespace meshard::linalg::distributed::internal
