#include <algorithm>
#include <tuple>

#include "meshard/autodiff/custom_vjp.h"
#include "meshard/linalg/distributed.h"
#include "meshard/linalg/internal/householder.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::linalg::distributed {
namespace internal {

Reflector reflector(const Tensor& at, const Tensor& below) {
  Reflector made;
  made.is_identity = equal(below, 0);
  Tensor norm = sqrt(at * at + below);
  made.beta = where(made.is_identity, at, where(at < 0, norm, -norm));
  Tensor divisor = where(made.is_identity, 1, made.beta);
  made.tau = where(made.is_identity, 0, (made.beta - at) / divisor);
  made.scale = where(made.is_identity, 0, 1 / where(made.is_identity, 1, at - made.beta));
  return made;
}

Tensor inverse_t(const Tensor& products, const Tensor& taus) {
  const Tensor i = iota(DType::i32, products.shape(), 0), j = iota(DType::i32, products.shape(), 1);
  Tensor diagonal = expand_dims(where(equal(taus, 0), 1, 1 / where(equal(taus, 0), 1, taus)), -1);
  return where(equal(i, j), diagonal, triu(products, 1));
}

Tensor reflected(const BlockLayout& layout, const Reflections& by, const Tensor& x,
                 bool transpose) {
  Tensor v = layout.as_rows(by.own_v);
  Tensor w = all_reduce(meshard::matmul(meshard::matrix_transpose(v), x), layout.rows);
  w = meshard::triangular_solve(
      by.inverse_t, w,
      {.lower = false, .transpose = transpose ? TransposeKind::kTranspose : TransposeKind::kNone});
  return x - meshard::matmul(v, w);
}

namespace {

struct FactoredPanel {
  Tensor own;  // own rows, with r on top
  Reflections reflections;
};

FactoredPanel factored_panel(const BlockLayout& layout, const Tensor& panel) {
  const std::int64_t height = panel.dim(0), width = panel.dim(1);
  const CollectiveAxes both{std::string(layout.columns), std::string(layout.rows)};
  const Tensor row = layout.index_of_own_rows(height / layout.block);
  const Tensor column = iota(DType::i32, {width}, 0);
  using State = std::tuple<Tensor, Tensor, Tensor>;  // the panel, v, taus
  auto step = [&](const Tensor& j, const State& state) {
    const auto& [own, v, taus] = state;
    Tensor x = reshape(dynamic_slice(own, {0, j}, {height, 1}), {height});
    Tensor at = equal(row, j), below = row > j;
    Tensor sums = all_reduce(stack({sum(where(at, x, 0)), sum(where(below, x * x, 0))}), both);
    Reflector found = reflector(index(sums, {0}), index(sums, {1}));
    Tensor reflection =
        where(below, x * found.scale, where(at, where(found.is_identity, 0, ones_like(x)), 0));
    Tensor products = all_reduce(meshard::matmul(meshard::matrix_transpose(own), reflection), both);
    products = where(column >= j, products, 0) * found.tau;
    return State{own - expand_dims(reflection, 1) * products,
                 dynamic_update_slice(v, expand_dims(reflection, 1), {0, j}),
                 dynamic_update_slice(taus, expand_dims(found.tau, 0), {j})};
  };
  Tensor none = vary(zeros(panel.shape(), panel.dtype()), both);
  State first{panel, none, zeros({width}, panel.dtype())};
  auto [own, v, taus] = fori_loop(0, width, step, first);
  Tensor products = all_reduce(meshard::matmul(meshard::matrix_transpose(v), v), both);
  return {own, {v, inverse_t(products, taus)}};
}

// Whether each element of a panel's square on this device, [panel_rows, panel_columns], is in the
// panel's row `row` and column `column`, as a function of both.
template <class Predicate>
Tensor square_where(const BlockLayout& layout, const Predicate& predicate) {
  Tensor row = layout.index_of_rows(1);
  return predicate(expand_dims(row, 1), expand_dims(layout.index_of_columns(1), 0));
}

// The identity's part of a panel's square.
Tensor identity_part(const BlockLayout& layout, DType dtype) {
  return astype(square_where(layout, [](const Tensor& i, const Tensor& j) { return equal(i, j); }),
                dtype);
}

// The rows of r of a panel that this device holds: its square, and what is right of it.
Tensor rows_of_r(const BlockLayout& layout, const Tensor& own, const Tensor& right,
                 std::int64_t left) {
  Tensor square = layout.own_columns(layout.as_rows(slice_along(own, 0, 0, layout.block)));
  Tensor upper = square_where(layout, [](const Tensor& i, const Tensor& j) { return i <= j; });
  square = where(upper, square, 0);
  Tensor row = right.dim(1) == 0
                   ? square
                   : concat({square, slice_along(right, 0, 0, layout.panel_rows())}, 1);
  return pad(row, 0, {0, left}, {0, 0});
}

Tensor product_of(const BlockLayout& layout, const std::vector<Reflections>& all,
                  std::int64_t panels_of_rows, DType dtype) {
  Tensor q;
  for (std::size_t l = all.size(); l-- > 0;) {
    const std::int64_t height =
        (panels_of_rows - static_cast<std::int64_t>(l)) * layout.panel_rows();
    Tensor corner = identity_part(layout, dtype);
    const std::int64_t width = q.defined() ? q.dim(1) : 0, below = height - layout.panel_rows();
    Tensor grown = pad(corner, 0, {0, 0}, {below, width});
    if (q.defined())
      grown = grown + pad(q, 0, {layout.panel_rows(), layout.panel_columns()}, {0, 0});
    q = reflected(layout, all[l], grown, /*transpose=*/false);
  }
  return q;
}

}  // namespace

LocalQr qr_on_device(const BlockLayout& layout, const Tensor& matrix, bool with_r) {
  const std::int64_t height = layout.panels_of_rows(matrix);
  const std::int64_t panels = std::min(height, layout.panels_of_columns(matrix));
  std::vector<Reflections> all;
  std::vector<Tensor> rows;
  Tensor left = matrix;
  for (std::int64_t l = 0; l < panels; ++l) {
    FactoredPanel panel = factored_panel(layout, layout.panel_as_own_rows(left));
    Tensor right = rest_of(left, 0, layout.panel_columns());
    if (right.dim(1) > 0) right = reflected(layout, panel.reflections, right, /*transpose=*/true);
    if (with_r) rows.push_back(rows_of_r(layout, panel.own, right, l * layout.panel_columns()));
    left = rest_of(right, layout.panel_rows(), 0);
    all.push_back(std::move(panel.reflections));
  }
  return {product_of(layout, all, height, matrix.dtype()), with_r ? concat(rows) : Tensor()};
}

}  // namespace internal

Qr qr(In x, const MatrixGrid& grid) {
  CallScope line(x.where, "in distributed::qr");
  auto factors = custom_vjp(
      [&](const Tensor& given) {
        auto [layout, matrix] = internal::prepared("distributed::qr", In(given, x.where), grid, {});
        const std::int64_t rows = given.dim(0), columns = given.dim(1);
        const std::int64_t common = std::min(rows, columns);
        const Tensor scale = internal::scale_of(matrix);
        std::vector<Tensor> made = internal::on_grid(
            grid, layout, matrix / scale,
            [layout = layout](const Tensor& local) {
              auto [q, r] = internal::qr_on_device(layout, local, true);
              return std::vector{q, r};
            },
            2);
        Qr result{internal::corner_of(made[0], rows, common, grid),
                  internal::corner_of(made[1] * scale, common, columns, grid)};
        return std::pair(result, std::tuple<>());
      },
      [where = x.where](const std::tuple<>&, const Qr&) -> std::tuple<Tensor> {
        throw Error(ErrorCode::kUnimplemented, "[distributed::qr] has no derivative", where);
      });
  Qr made = factors(operand_tensor("distributed::qr", x));
  return {internal::result_of(x, made.q), internal::result_of(x, made.r)};
}

}  // namespace meshard::linalg::distributed
