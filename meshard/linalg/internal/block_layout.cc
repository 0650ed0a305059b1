#include "meshard/linalg/internal/block_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::linalg::distributed::internal {
namespace {

// Part number `index` of `count` equal parts of a dimension.
Tensor part_of(const Tensor& x, std::int64_t dimension, const Tensor& index) {
  std::vector<In> starts;
  Dimensions sizes, left;
  for (int d = 0; d < x.rank(); ++d) {
    const bool chosen = d == dimension;
    starts.emplace_back(chosen ? In(index) : In(0));
    sizes.push_back(chosen ? 1 : x.dim(d));
    if (!chosen) left.push_back(x.dim(d));
  }
  return reshape(dynamic_slice(x, starts, sizes), Shape(left));
}

// Own rows, gathered along an axis whose digit has this size, in the place of that digit.
Tensor gathered_rows(const Tensor& own, std::int64_t block, std::string_view axis) {
  const std::int64_t panels = own.dim(0) / block, width = own.dim(1);
  Tensor all = all_gather(reshape(own, {panels, 1, block, width}), axis, 1);
  return reshape(all, {all.dim(0) * all.dim(1) * block, width});
}

std::int64_t rounded_up(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

std::int64_t axis_size_of(const MatrixGrid& grid, const std::string& axis, std::string_view op,
                          SourceLocation where) {
  const std::optional<std::size_t> found = grid.mesh.find_axis(axis);
  if (!found) throw_invalid(where, "[", op, "] ", grid.mesh, " has no axis \"", axis, '"');
  return grid.mesh.axes()[*found].size;
}

// Matrices have about this many panels: fewer leave devices without work in the last one, more make
// the program, which has each of them, larger.
constexpr std::int64_t kPanels = 16;
// Fewer panels than that are at least this wide.
constexpr std::int64_t kNarrowest = 64;

BlockLayout layout_for(std::int64_t rows, std::int64_t columns, const MatrixGrid& grid,
                       std::string_view op, SourceLocation where) {
  BlockLayout layout{.rows = grid.rows, .columns = grid.columns};
  layout.pr = axis_size_of(grid, grid.rows, op, where);
  layout.pc = axis_size_of(grid, grid.columns, op, where);
  if (grid.rows == grid.columns)
    throw_invalid(where, "[", op, "] rows and columns are both split over the axis \"", grid.rows,
                  "\" of ", grid.mesh);
  if (grid.block < 0) throw_invalid(where, "[", op, "] the block ", grid.block, " is negative");
  const std::int64_t size = std::min(rows, columns), together = std::lcm(layout.pr, layout.pc);
  const std::int64_t wanted = std::min(kPanels, size / kNarrowest);
  const std::int64_t panels = together * std::max<std::int64_t>(1, wanted / together);
  const std::int64_t units = panels * layout.pr * layout.pc;
  layout.block =
      grid.block > 0 ? grid.block : std::max<std::int64_t>(1, (size + units - 1) / units);
  return layout;
}

}  // namespace

Tensor BlockLayout::dealt(const Tensor& local) const {
  const std::int64_t height = local.dim(0), width = local.dim(1), blocks = panel_columns();
  Tensor x = reshape(local, {height / (pr * block), pr, block, width});
  x = reshape(all_to_all(x, rows, 1, 0), {height, width});
  x = reshape(x, {height, width / (pc * blocks), pc, blocks});
  return reshape(all_to_all(x, columns, 2, 1), {height, width});
}

Tensor BlockLayout::contiguous(const Tensor& local) const {
  const std::int64_t height = local.dim(0), width = local.dim(1), blocks = panel_columns();
  Tensor x = reshape(local, {height, width / blocks, 1, blocks});
  x = reshape(all_to_all(x, columns, 1, 2), {height, width});
  x = reshape(x, {height / block, 1, block, width});
  return reshape(all_to_all(x, rows, 0, 1), {height, width});
}

Tensor BlockLayout::panel_as_own_rows(const Tensor& local) const {
  const std::int64_t panels = panels_of_rows(local), width = panel_columns();
  Tensor first = slice_along(local, 1, 0, width);
  Tensor own = all_to_all(reshape(first, {panels, pc, block, width}), columns, 1, 3);
  return reshape(own, {panels * block, panel()});
}

Tensor BlockLayout::as_rows(const Tensor& own) const { return gathered_rows(own, block, columns); }
Tensor BlockLayout::as_columns(const Tensor& own) const { return gathered_rows(own, block, rows); }

Tensor BlockLayout::own_of_rows(const Tensor& of_device) const {
  const std::int64_t panels = panels_of_rows(of_device), width = of_device.dim(1);
  Tensor digits = reshape(of_device, {panels, pc, block, width});
  return reshape(part_of(digits, 1, axis_index(of_device, columns)), {panels * block, width});
}

Tensor BlockLayout::own_columns(const Tensor& all) const {
  return part_of(reshape(all, {all.dim(0), pc, panel_columns()}), 1, axis_index(all, columns));
}

Tensor BlockLayout::own_part(const Tensor& all) const {
  Tensor digits = reshape(all, {pc, pr, block, all.dim(1)});
  return reshape(part_of(digits, 1, axis_index(all, rows)), {panel_rows(), all.dim(1)});
}

Tensor BlockLayout::index_of_own_rows(std::int64_t panels) const {
  Tensor i = iota(DType::i32, {panels * block}, 0);
  return floor_divide(i, block) * panel() +
         axis_index({std::string(columns), std::string(rows)}) * block + i % block;
}

Tensor BlockLayout::index_of_rows(std::int64_t panels) const {
  Tensor i = iota(DType::i32, {panels * panel_rows()}, 0);
  return floor_divide(i, block) * (pr * block) + axis_index(rows) * block + i % block;
}

Tensor BlockLayout::index_of_columns(std::int64_t panels) const {
  Tensor i = iota(DType::i32, {panels * panel_columns()}, 0);
  return floor_divide(i, panel_columns()) * panel() + axis_index(columns) * panel_columns() +
         i % panel_columns();
}

Tensor result_of(In x, const Tensor& result) {
  const DType dtype = operand_tensor("distributed", x).dtype();
  return is_floating(dtype) && dtype != result.dtype() && is_floating(result.dtype())
             ? astype(result, dtype)
             : result;
}

Tensor symmetric(const Tensor& x) { return (x + conj(meshard::matrix_transpose(x))) * 0.5; }

Tensor scale_of(const Tensor& x) {
  Tensor largest = max(abs(x));
  Tensor scale = exp2(floor(log2(where(largest > 0, largest, 1))) + 1);
  return where(isfinite(largest), scale, std::numeric_limits<double>::quiet_NaN());
}

Prepared prepared(std::string_view op, In x, const MatrixGrid& grid, Takes takes) {
  Tensor matrix = operand_tensor(op, x);
  if (matrix.rank() != 2)
    throw_invalid(x.where, "[", op, "] takes one matrix, not ", matrix.type());
  if (takes.square && matrix.dim(0) != matrix.dim(1))
    throw_invalid(x.where, "[", op, "] the matrix is not square: ", matrix.type());
  if (is_complex(matrix.dtype()) && !takes.complex)
    throw_invalid(x.where, "[", op, "] complex matrices are not supported: ", matrix.type());
  const bool wide = matrix.dtype() == DType::f64 || is_complex(matrix.dtype());
  if (!wide) matrix = astype(matrix, DType::f32);
  Prepared made;
  made.layout = layout_for(matrix.dim(0), matrix.dim(1), grid, op, x.where);
  const std::int64_t unit = made.layout.panel() * std::lcm(made.layout.pr, made.layout.pc);
  // At least two rows, so that a tridiagonal matrix has a second diagonal.
  auto padded = [&](std::int64_t size) {
    return rounded_up(std::max<std::int64_t>(2, size), unit);
  };
  const Dimensions beyond{padded(matrix.dim(0)) - matrix.dim(0),
                          padded(matrix.dim(1)) - matrix.dim(1)};
  made.matrix =
      mark_sharding(pad(matrix, 0, {0, 0}, beyond), grid.mesh, P(grid.rows, grid.columns));
  return made;
}

std::vector<Tensor> on_grid(const MatrixGrid& grid, const BlockLayout& layout, const Tensor& matrix,
                            const std::function<std::vector<Tensor>(const Tensor&)>& body,
                            std::size_t results, std::size_t replicated) {
  const PartitionSpec split = P(grid.rows, grid.columns);
  std::vector<PartitionSpec> out(results - replicated, split);
  out.resize(results, P());
  auto run = [&](const Tensor& local) {
    std::vector<Tensor> made = body(layout.dealt(local));
    for (std::size_t i = 0; i + replicated < made.size(); ++i) made[i] = layout.contiguous(made[i]);
    return made;
  };
  return meshard::manual(grid.mesh, split, SpecList(std::move(out)), run,
                         {.axes = {grid.rows, grid.columns}})(matrix);
}

Tensor corner_of(const Tensor& x, std::int64_t rows, std::int64_t columns, const MatrixGrid& grid) {
  return mark_sharding(slice(x, {0, 0}, {rows, columns}), grid.mesh, P(grid.rows, grid.columns));
}

Tensor rest_of(const Tensor& x, std::int64_t row, std::int64_t column) {
  return slice(x, {row, column}, {x.dim(0), x.dim(1)});
}

}  // namespace meshard::linalg::distributed::internal
