#include "meshard/linalg/distributed.h"
#include "meshard/linalg/internal/block_layout.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::linalg::distributed {
namespace {

using internal::BlockLayout;

// The factor takes the matrix's place, panel by panel: what it replaces is used no more.
Tensor cholesky_on_device(const BlockLayout& layout, Tensor matrix) {
  const std::int64_t panels = layout.panels_of_rows(matrix);
  for (std::int64_t l = 0; l < panels; ++l) {
    const std::int64_t row = l * layout.panel_rows(), column = l * layout.panel_columns();
    Tensor columns = slice(matrix, {row, column}, {matrix.dim(0), column + layout.panel_columns()});
    Tensor panel = layout.panel_as_own_rows(columns);
    Tensor top = all_gather(slice_along(panel, 0, 0, layout.block),
                            {std::string(layout.columns), std::string(layout.rows)});
    Tensor diagonal = meshard::cholesky(tril(top) + conj(meshard::matrix_transpose(tril(top, -1))));
    Tensor below =
        meshard::triangular_solve(diagonal, internal::rest_of(panel, layout.block, 0),
                                  {.left_side = false, .transpose = TransposeKind::kAdjoint});
    Tensor factor = layout.own_columns(layout.own_part(diagonal));
    if (l + 1 < panels) {
      Tensor rows = layout.as_rows(below);
      factor = concat({factor, layout.own_columns(rows)});
      const std::int64_t next = row + layout.panel_rows(), right = column + layout.panel_columns();
      Tensor left =
          internal::rest_of(matrix, next, right) -
          meshard::matmul(rows, conj(meshard::matrix_transpose(layout.as_columns(below))));
      matrix = dynamic_update_slice(matrix, left, {next, right});
    }
    matrix = dynamic_update_slice(matrix, factor, {row, column});
  }
  Tensor index = expand_dims(layout.index_of_rows(panels), 1);
  return where(index >= expand_dims(layout.index_of_columns(panels), 0), matrix, 0);
}

}  // namespace

Tensor cholesky(In x, const MatrixGrid& grid) {
  CallScope line(x.where, "in distributed::cholesky");
  auto [layout, matrix] =
      internal::prepared("distributed::cholesky", x, grid, {.square = true, .complex = true});
  const std::int64_t size = operand_tensor("distributed::cholesky", x).dim(0);
  // The rows beyond the matrix are those of the identity.
  Tensor i = iota(DType::i32, matrix.shape(), 0);
  matrix = where(equal(i, iota(DType::i32, matrix.shape(), 1)) & (i >= size), 1, matrix);
  Tensor factor = internal::on_grid(
      grid, layout, matrix,
      [layout = layout](const Tensor& local) {
        return std::vector{cholesky_on_device(layout, local)};
      },
      1)[0];
  return internal::result_of(x, internal::corner_of(factor, size, size, grid));
}

}  // namespace meshard::linalg::distributed
