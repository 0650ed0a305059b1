#include "meshard/linalg/internal/block_layout.h"

#include "meshard/linalg/linalg_testutil.h"

namespace meshard::linalg::distributed::internal {
namespace {

using BlockLayouts = OnPlugin;

// A matrix whose elements are their own index.
Tensor numbered(std::int64_t rows, std::int64_t columns) {
  return from_host(reshape(arange(static_cast<double>(rows * columns)), {rows, columns}).to_host());
}

// Runs on local matrices of P("rows", "columns") that are not dealt out.
Tensor on_parts(const Mesh& mesh, const Tensor& matrix, const PartitionSpec& out,
                const std::function<Tensor(const Tensor&)>& body) {
  return on_host(manual(mesh, P("rows", "columns"), out, body)(matrix));
}

TEST_F(BlockLayouts, DealingOutAndTakingBack) {
  Mesh mesh = grid_mesh(2, 3);
  BlockLayout layout{.rows = "rows", .columns = "columns", .pr = 2, .pc = 3, .block = 2};
  const std::int64_t size = layout.panel() * 6;  // 72
  Tensor matrix = numbered(size, size);
  const PartitionSpec split = P("rows", "columns");
  Tensor same = on_parts(mesh, matrix, split, [&](const Tensor& local) {
    return layout.contiguous(layout.dealt(local));
  });
  EXPECT_EQ(norm_of(same - matrix), 0);
  // Element (i, j) of the device's matrix has the indices that the layout says.
  Tensor difference = on_parts(mesh, matrix, split, [&](const Tensor& local) {
    Tensor row = layout.index_of_rows(6), column = layout.index_of_columns(6);
    Tensor number = expand_dims(row, 1) * size + expand_dims(column, 0);
    return layout.dealt(local) - astype(number, DType::f32);
  });
  EXPECT_EQ(norm_of(difference), 0);
}

TEST_F(BlockLayouts, OwnRowsBecomeRowsAndColumns) {
  Mesh mesh = grid_mesh(3, 2);
  BlockLayout layout{.rows = "rows", .columns = "columns", .pr = 3, .pc = 2, .block = 2};
  const std::int64_t panels = 6, size = layout.panel() * panels;
  Tensor matrix = numbered(size, size);
  auto expect_zero = [&](const std::function<Tensor(const Tensor&)>& difference) {
    Tensor found = on_parts(mesh, matrix, P("rows", "columns"), difference);
    EXPECT_EQ(norm_of(found), 0);
  };
  auto column_of = [](const Tensor& index) { return expand_dims(astype(index, DType::f32), 1); };
  // The first panel has the columns 0 to 11 of all rows.
  expect_zero([&](const Tensor& local) {
    Tensor own = layout.panel_as_own_rows(layout.dealt(local));
    Tensor expected = column_of(layout.index_of_own_rows(panels)) * static_cast<double>(size) +
                      iota(DType::f32, {1, layout.panel()}, 1);
    return own - expected;
  });
  expect_zero([&](const Tensor& local) {
    Tensor own = vary(column_of(layout.index_of_own_rows(panels)), {"rows", "columns"});
    Tensor rows = layout.as_rows(own) - column_of(layout.index_of_rows(panels));
    Tensor columns = layout.as_columns(own) - column_of(layout.index_of_columns(panels));
    Tensor back = layout.own_of_rows(layout.as_rows(own)) - own;
    return local * 0 + sum(abs(rows)) + sum(abs(columns)) + sum(abs(back));
  });
  // Parts of what all devices have.
  expect_zero([&](const Tensor& local) {
    Tensor square = reshape(iota(DType::f32, {layout.panel() * layout.panel()}, 0),
                            {layout.panel(), layout.panel()});
    Tensor part = layout.own_columns(layout.own_part(vary(square, {"rows", "columns"})));
    Tensor expected = column_of(layout.index_of_rows(1)) * static_cast<double>(layout.panel()) +
                      astype(expand_dims(layout.index_of_columns(1), 0), DType::f32);
    return local * 0 + sum(abs(part - expected));
  });
}

}  // namespace
}  // namespace meshard::linalg::distributed::internal
