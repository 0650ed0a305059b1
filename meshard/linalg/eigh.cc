#include <tuple>
#include <utility>

#include "meshard/autodiff/custom_vjp.h"
#include "meshard/linalg/distributed.h"
#include "meshard/linalg/internal/householder.h"
#include "meshard/linalg/internal/tridiagonal.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::linalg::distributed {
namespace {

using internal::BlockLayout;
using internal::Reflections;

struct ReducedPanel {
  Tensor update;            // the device's rows of [v w]: left is updated by - v w^T - w v^T
  Tensor diagonal, beside;  // [panel]
  Reflections reflections;
};

// [a b] as [b a], of two halves along a dimension.
Tensor exchanged(const Tensor& x, std::int64_t dimension) {
  const std::int64_t half = x.dim(dimension) / 2;
  return concat({slice_along(x, dimension, half, 2 * half), slice_along(x, dimension, 0, half)},
                dimension);
}

// The first panel of columns, reduced to tridiagonal form (LAPACK's xLATRD, forward).
// @param left what is left of the matrix, from the panel's first row and column on
ReducedPanel reduced_panel(const BlockLayout& layout, const Tensor& left) {
  const std::int64_t height = left.dim(0), width = layout.panel();
  const std::string rows(layout.rows), columns(layout.columns);
  const CollectiveAxes both{columns, rows};
  const Tensor row = layout.index_of_rows(layout.panels_of_rows(left));
  const Tensor panel = all_gather(slice_along(left, 1, 0, layout.panel_columns()), columns, 1);
  // For each column: v and w, the diagonal, what is beside it, and tau.
  using State = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  auto step = [&](const Tensor& j, const State& state) {
    const auto& [update, diagonal, beside, taus] = state;
    Tensor at_diagonal = equal(row, j), at_beside = equal(row, j + 1), below = row > j + 1;
    // Row j of v and w, which one device along the grid's rows has.
    Tensor row_j = all_reduce(sum(where(expand_dims(at_diagonal, 1), update, 0), 0), rows);
    Tensor x = reshape(dynamic_slice(panel, {0, j}, {height, 1}), {height}) -
               meshard::matmul(update, exchanged(row_j, 0));
    Tensor sums = all_reduce(stack({sum(where(at_diagonal, x, 0)), sum(where(at_beside, x, 0)),
                                    sum(where(below, x * x, 0))}),
                             rows);
    internal::Reflector found = internal::reflector(index(sums, {1}), index(sums, {2}));
    Tensor one = where(found.is_identity, 0, ones_like(x));
    Tensor u = where(below, x * found.scale, where(at_beside, one, 0));
    // The product of what is left with u: of the matrix before this panel, and its updates.
    Tensor of_columns = layout.as_columns(layout.own_of_rows(expand_dims(u, 1)));
    Tensor y = reshape(all_reduce(meshard::matmul(left, of_columns), columns), {height});
    Tensor products = all_reduce(meshard::matmul(meshard::matrix_transpose(update), u), rows);
    y = (y - meshard::matmul(update, exchanged(products, 0))) * found.tau;
    Tensor half = all_reduce(sum(y * u), rows) * found.tau * 0.5;
    Tensor with_v = dynamic_update_slice(update, expand_dims(u, 1), {0, j});
    auto with_number = [&](const Tensor& all, const Tensor& number) {
      return dynamic_update_slice(all, expand_dims(number, 0), {j});
    };
    return State{dynamic_update_slice(with_v, expand_dims(y - half * u, 1), {0, j + width}),
                 with_number(diagonal, index(sums, {0})), with_number(beside, found.beta),
                 with_number(taus, found.tau)};
  };
  Tensor none = vary(zeros({height, 2 * width}, left.dtype()), both);
  Tensor numbers = vary(zeros({width}, left.dtype()), columns);
  auto [update, diagonal, beside, taus] =
      fori_loop(0, width, step, State{none, numbers, numbers, numbers});
  Tensor v = slice_along(update, 1, 0, width);
  Tensor products = all_reduce(meshard::matmul(meshard::matrix_transpose(v), v), rows);
  return {update, diagonal, beside, {layout.own_of_rows(v), internal::inverse_t(products, taus)}};
}

// Columns that a device has whole, for its own positions, in the layout of a matrix.
Tensor as_matrix(const BlockLayout& layout, const Tensor& own_columns) {
  const std::int64_t n = own_columns.dim(0), blocks = own_columns.dim(1) / layout.block;
  Tensor digits = reshape(own_columns, {n / (layout.pr * layout.block), layout.pr, layout.block,
                                        blocks, 1, layout.block});
  return reshape(all_to_all(digits, layout.rows, 1, 4),
                 {n / layout.pr, own_columns.dim(1) * layout.pr});
}

// The eigenvectors, in the layout, and the eigenvalues, the same on all devices, of the first
// `size` rows and columns; the others are zeros.
std::vector<Tensor> eigh_on_device(const BlockLayout& layout, Tensor left, std::int64_t size) {
  const DType dtype = left.dtype();
  const std::int64_t panels = layout.panels_of_rows(left), n = panels * layout.panel();
  std::vector<Reflections> all;
  std::vector<Tensor> diagonals, besides;
  for (std::int64_t l = 0; l < panels; ++l) {
    ReducedPanel panel = reduced_panel(layout, left);
    diagonals.push_back(panel.diagonal);
    besides.push_back(panel.beside);
    all.push_back(panel.reflections);
    if (l + 1 == panels) break;
    Tensor update = internal::rest_of(panel.update, layout.panel_rows(), 0);
    Tensor of_columns = layout.as_columns(layout.own_of_rows(exchanged(update, 1)));
    left = internal::rest_of(left, layout.panel_rows(), layout.panel_columns()) -
           meshard::matmul(update, meshard::matrix_transpose(of_columns));
  }
  Tensor diagonal = astype(concat(diagonals), DType::f64);
  Tensor beside = astype(concat(besides), DType::f64);
  internal::Tridiagonal matrix = internal::tridiagonal(diagonal, beside);
  // What was padded comes after all others.
  Tensor beyond = matrix.high + (matrix.high - matrix.low) * 0.125 + 1e-300;
  Tensor position = iota(DType::i32, {n}, 0);
  if (size < n)
    matrix = internal::tridiagonal(where(position < size, diagonal, beyond),
                                   where(position < size - 1, beside, 0));
  Tensor own = layout.index_of_own_rows(panels);
  Tensor values = internal::eigenvalues_at(matrix, own);
  Tensor vectors = as_matrix(layout, internal::eigenvectors_for(matrix, values, own, dtype));
  vectors = internal::qr_on_device(layout, vectors, /*with_r=*/false).q;
  for (std::size_t l = all.size(); l-- > 0;) {
    const std::int64_t first = static_cast<std::int64_t>(l) * layout.panel_rows();
    Tensor below = internal::reflected(layout, all[l], internal::rest_of(vectors, first, 0),
                                       /*transpose=*/false);
    vectors = first == 0 ? below : concat({slice_along(vectors, 0, 0, first), below});
  }
  Tensor together =
      all_gather_invariant(reshape(astype(values, dtype), {panels, 1, layout.block}),
                           {std::string(layout.columns), std::string(layout.rows)}, 1);
  return {vectors, reshape(together, {n})};
}

// As eigh()'s.
std::tuple<Tensor> eigh_cotangent(const Eigh& factors, const Eigh& cotangents) {
  const auto& [w, v] = factors;
  Tensor transposed = meshard::matrix_transpose(v);
  Tensor i = iota(DType::i32, v.shape(), 0);
  Tensor diagonal = equal(i, iota(DType::i32, v.shape(), 1));
  Tensor gaps = where(diagonal, 1, expand_dims(w, 0) - expand_dims(w, 1));
  Tensor inner = where(diagonal, expand_dims(cotangents.eigenvalues, 1),
                       meshard::matmul(transposed, cotangents.eigenvectors) / gaps);
  Tensor whole = meshard::matmul(meshard::matmul(v, inner), transposed);
  return internal::symmetric(whole);
}

}  // namespace

Eigh eigh(In x, const MatrixGrid& grid) {
  CallScope line(x.where, "in distributed::eigh");
  auto factors = custom_vjp(
      [&](const Tensor& given) {
        auto [layout, matrix] =
            internal::prepared("distributed::eigh", In(given, x.where), grid, {.square = true});
        const std::int64_t size = given.dim(0);
        const Tensor scale = internal::scale_of(matrix);
        std::vector<Tensor> made = internal::on_grid(
            grid, layout, internal::symmetric(matrix / scale),
            [layout = layout, size](const Tensor& local) {
              return eigh_on_device(layout, local, size);
            },
            2, 1);
        Eigh result{slice_along(made[1], 0, 0, size) * scale,
                    internal::corner_of(made[0], size, size, grid)};
        return std::pair(result, result);
      },
      [](const Eigh& result, const Eigh& cotangents) {
        return eigh_cotangent(result, cotangents);
      });
  Eigh made = factors(operand_tensor("distributed::eigh", x));
  return {internal::result_of(x, made.eigenvalues), internal::result_of(x, made.eigenvectors)};
}

}  // namespace meshard::linalg::distributed
