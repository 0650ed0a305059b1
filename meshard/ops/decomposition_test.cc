#include <gtest/gtest.h>

#include "meshard/ops/all.h"
#include "meshard/ops/linalg.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

template <class... T>
std::string types_of(const T&... tensors) {
  std::string text;
  for (const Tensor* each : {&tensors...})
    text += (text.empty() ? "" : " ") + to_string(each->type());
  return text;
}

TEST(Decomposition, Types) {
  Tensor x = input({2, 5, 3}), square = input({4, 4}, DType::c128);
  auto [p, l, u] = linalg::lu(x);
  EXPECT_EQ(types_of(p, l, u), "f32[2,5,5] f32[2,5,3] f32[2,3,3]");
  auto [lu, pivots] = linalg::lu_factor(input({3, 5}, DType::bf16));
  EXPECT_EQ(types_of(lu, pivots), "bf16[3,5] i32[3]");
  auto [left, s, right] = linalg::svd(x);
  EXPECT_EQ(types_of(left, s, right), "f32[2,5,3] f32[2,3] f32[2,3,3]");
  auto [all_left, values, all_right] = linalg::svd(input({3, 5}, DType::c64), true);
  EXPECT_EQ(types_of(all_left, values, all_right), "c64[3,3] f32[3] c64[5,5]");
  auto [w, v] = linalg::eig(input({2, 3, 3}, DType::f64));
  EXPECT_EQ(types_of(w, v), "c128[2,3] c128[2,3,3]");
  auto [t, z] = linalg::schur(input({3, 3}), true);
  EXPECT_EQ(types_of(t, z), "c64[3,3] c64[3,3]");
  EXPECT_EQ(
      types_of(linalg::expm(input({2, 2})), linalg::sqrtm(input({2, 2})), linalg::logm(square)),
      "f32[2,2] c64[2,2] c128[4,4]");
  EXPECT_EQ(types_of(linalg::pinv(x), linalg::matrix_rank(x), linalg::cond(x)),
            "f32[2,3,5] i32[2] f32[2]");
  auto [solution, residuals, rank, singular] = linalg::lstsq(x, input({5}, DType::f64));
  EXPECT_EQ(types_of(solution, residuals, rank, singular), "f64[2,3] f64[2] i32[2] f64[2,3]");
  EXPECT_EQ(types_of(linalg::tensorsolve(input({2, 3, 6}), input({2, 3}))), "f32[6]");
  EXPECT_EQ(types_of(linalg::cholesky_solve(input({4, 4}), input({3, 4, 2}))), "f32[3,4,2]");
  EXPECT_EQ(types_of(linalg::svd(input({0, 3})).u, linalg::eigvals(input({2, 0, 0}))),
            "f32[0,0] c64[2,0]");
  EXPECT_EQ(types_of(linalg::lu_solve(input({0, 0}), input({0}, DType::i32), input({4, 0, 2}))),
            "f32[4,0,2]");
}

TEST(Decomposition, BatchesPassThrough) {
  Tensor lu = linalg::lu_factor(input({8, 4, 4})).lu;
  EXPECT_EQ(rule_of(lu),
            "([i, j, k])->([i, l, m], [i, n], [i, o], [i]) {i=8, j=4, k=4, l=4, m=4, n=4, o=4} "
            "need_replication={j, k, l, m, n, o}");
}

TEST(Decomposition, ErrorsHaveTheUsersLine) {
  auto fails = [](auto call, std::vector<std::string> parts) {
    parts.push_back("decomposition_test.cc:");
    return throws_error(call, ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails([] { linalg::svd(input({3})); }, {"[svd]", "f32[3]"}));
  EXPECT_TRUE(fails([] { linalg::eig(input({3, 2})); }, {"[eig]", "square", "f32[3,2]"}));
  EXPECT_TRUE(fails([] { linalg::expm(input({3, 2})); }, {"[expm]", "square", "f32[3,2]"}));
  EXPECT_TRUE(fails(
      [] {
        linalg::lstsq(input({3, 2}), input({2}));
      },
      {"[lstsq]", "3 rows", "f32[2]"}));
  EXPECT_TRUE(fails(
      [] {
        linalg::tensorsolve(input({2, 3, 5}), input({2, 3}));
      },
      {"[tensorsolve]", "6 by 5"}));
  EXPECT_TRUE(fails(
      [] {
        linalg::lu_solve(input({3, 3}), input({2}, DType::i32), input({3}));
      },
      {"[lu_solve]", "i32[2]"}));
  EXPECT_TRUE(fails([] { linalg::lu_pivots_to_permutation(input({4}, DType::i32), 3); },
                    {"[lu_pivots_to_permutation]", "4 pivots", "3 rows"}));
  EXPECT_TRUE(fails([] { linalg::cond(input({0, 0})); }, {"[cond]", "f32[0,0]"}));
}

}  // namespace
}  // namespace meshard
