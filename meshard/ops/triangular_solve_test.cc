#include "meshard/ops/triangular_solve.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(TriangularSolve, EmitsAsSpecified) {
  Tensor y =
      triangular_solve(input({3, 4, 4}), input({3, 2, 4}),
                       {.left_side = false, .lower = false, .transpose = TransposeKind::kAdjoint});
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.triangular_solve\"(%arg0, %arg1) <{left_side = false, lower = false, "
            "unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>}> : "
            "(tensor<3x4x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>");
  EXPECT_EQ(rule_of(y),
            "([i, j, k], [i, l, j])->([i, l, j]) {i=3, j=4, k=4, l=2} need_replication={j, k}");
}

TEST(TriangularSolve, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument,
                             {"triangular_solve_test.cc:", "[triangular_solve]", part}));
  };
  fails("takes square matrices, not 4 by 3 of f32[4,3]", [] {
    triangular_solve(input({4, 3}), input({4, 2}));
  });
  fails("matrices of size 4 (f32[4,4]) do not match b with 3 rows (f32[3,2])", [] {
    triangular_solve(input({4, 4}), input({3, 2}));
  });
  fails("b with 4 columns", [] {
    triangular_solve(input({3, 3}), input({3, 4}), {.left_side = false});
  });
  fails("ranks differ", [] { triangular_solve(input({4, 4}), input({4})); });
  fails("dimension 0 of f32[2,4,4] = 2, of f32[3,4,1] = 3", [] {
    triangular_solve(input({2, 4, 4}), input({3, 4, 1}));
  });
  EXPECT_EQ(triangular_solve(input({4, 4}, DType::f64), input({4, 1})).dtype(), DType::f64);
  EXPECT_EQ(triangular_solve(input({4, 4}, DType::bf16), input({4, 1}, DType::bf16)).dtype(),
            DType::bf16);
}

}  // namespace
}  // namespace meshard
