#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "meshard/autodiff/grad.h"
#include "meshard/linalg/distributed.h"
#include "meshard/linalg/linalg_testutil.h"

namespace meshard::linalg::distributed {
namespace {

using DistributedQr = OnPlugin;

TEST_F(DistributedQr, QrOfAnyShape) {
  struct Case {
    std::int64_t height, width, rows, columns;
    DType dtype;
  };
  for (const Case& c : {Case{20, 9, 2, 2, DType::f32}, Case{7, 12, 2, 2, DType::f64},
                        Case{11, 11, 1, 3, DType::f64}}) {
    SCOPED_TRACE(cat(c.height, "x", c.width, " on ", c.rows, "x", c.columns));
    MatrixGrid grid(grid_mesh(c.rows, c.columns), "rows", "columns");
    Tensor a = random_matrix(c.height, c.width, c.dtype);
    a = on_host(a * where(equal(iota(DType::i32, a.shape(), 1), 3), 0,
                          1e30));  // a zero column, large numbers
    Qr found = qr(a, grid);
    Tensor q = on_host(found.q), r = on_host(found.r);
    const std::int64_t common = std::min(c.height, c.width);
    ASSERT_EQ(q.shape(), (Shape{c.height, common}));
    ASSERT_EQ(r.shape(), (Shape{common, c.width}));
    EXPECT_LT(error_of((matmul(q, r) - a) / 1e30, a / 1e30), kMost);
    EXPECT_LT(error_of(matmul(matrix_transpose(q), q) - eye(common), astype(eye(common), c.dtype)),
              kMost);
    EXPECT_EQ(norm_of(tril(r, -1)), 0);
  }
}

}  // namespace
}  // namespace meshard::linalg::distributed
