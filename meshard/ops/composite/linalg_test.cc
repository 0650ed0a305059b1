#include "meshard/ops/composite/linalg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor counting_tensor(Shape shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(i));
  return from_host(HostArray::from_vector(std::move(values), std::move(shape)));
}

TEST(Linalg, HasTheNamesOfNumpy) {
  Tensor x = counting_tensor({3, 3});
  EXPECT_EQ(interpret(linalg::trace(x)).to_vector<float>(), std::vector<float>{12});
  EXPECT_EQ(linalg::eigh(x).eigenvectors.shape(), (Shape{3, 3}));
  EXPECT_EQ(linalg::qr(x).r.shape(), (Shape{3, 3}));
  EXPECT_EQ(linalg::solve(x, x).shape(), (Shape{3, 3}));
}

TEST(Linalg, DiagonalsAndTraces) {
  auto elements = [](std::int64_t rows, std::int64_t columns, std::int64_t offset) {
    return interpret(diagonal(counting_tensor({rows, columns}), offset)).to_vector<float>();
  };
  using List = std::vector<float>;
  EXPECT_EQ(elements(3, 4, 0), (List{0, 5, 10}));
  EXPECT_EQ(elements(3, 4, 1), (List{1, 6, 11}));
  EXPECT_EQ(elements(3, 4, 3), (List{3}));
  EXPECT_EQ(elements(3, 4, -1), (List{4, 9}));
  EXPECT_EQ(elements(4, 2, -2), (List{4, 7}));
  EXPECT_EQ(elements(3, 4, 5), List{});
  EXPECT_EQ(interpret(trace(counting_tensor({2, 3, 3}))), HostArray::from_vector<float>({12, 39}));
  EXPECT_EQ(interpret(trace(counting_tensor({3, 4}), 1)), HostArray::scalar(18.0f));
}

TEST(Linalg, ProductsOfVectors) {
  Tensor a = from_host(HostArray::from_vector<float>({1, 2, 3}));
  Tensor b = from_host(HostArray::from_vector<float>({4, 5, 7}));
  EXPECT_EQ(interpret(cross(a, b)), HostArray::from_vector<float>({-1, 5, -3}));
  EXPECT_EQ(interpret(vecdot(a, b)), HostArray::scalar(35.0f));
  EXPECT_EQ(cross(input({3, 2}), input({3, 2}), 0).shape(), (Shape{3, 2}));
  EXPECT_EQ(cross(input({4, 1, 3}), input({5, 3})).shape(), (Shape{4, 5, 3}));
  EXPECT_EQ(vecdot(input({4, 3}, DType::c64), input({3})).type().to_string(), "c64[4]");
}

TEST(Linalg, Norms) {
  Tensor x = from_host(HostArray::from_vector<double>({3, -4, 0, 0}, {2, 2}));
  auto value = [](const Tensor& t) { return interpret(t).item<double>(); };
  EXPECT_EQ(value(vector_norm(x)), 5);
  EXPECT_EQ(value(vector_norm(x, {}, false, 1)), 7);
  EXPECT_EQ(value(vector_norm(x, {}, false, 0)), 2);
  EXPECT_NEAR(value(vector_norm(x, {}, false, 3)), std::cbrt(91.0), 1e-12);
  EXPECT_EQ(vector_norm(input({2, 3, 4}), {0, 2}, true).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(vector_norm(input({2}, DType::c128)).type().to_string(), "f64[]");
  EXPECT_EQ(matrix_norm(input({2, 3, 4}), true).shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(matrix_norm(input({2, 3, 4}), false, MatrixNorm::kSpectral).shape(), (Shape{2}));
  EXPECT_EQ(matrix_norm(input({2, 3, 4}), true, MatrixNorm::kSpectral).shape(), (Shape{2, 1, 1}));
}

TEST(Linalg, TypesOfSolutions) {
  EXPECT_EQ(solve(input({3, 3}), input({3})).shape(), (Shape{3}));
  EXPECT_EQ(solve(input({2, 1, 3, 3}), input({4, 3, 5})).shape(), (Shape{2, 4, 3, 5}));
  EXPECT_EQ(solve(input({3, 3}, DType::c64), input({3})).dtype(), DType::c64);
  EXPECT_EQ(solve(input({3, 3}, DType::bf16), input({3}, DType::bf16)).dtype(), DType::bf16);
  EXPECT_EQ(inv(input({4, 3, 3}, DType::f64)).type().to_string(), "f64[4,3,3]");
  EXPECT_EQ(det(input({4, 3, 3})).shape(), (Shape{4}));
  EXPECT_EQ(matrix_power(input({4, 3, 3}), 0).shape(), (Shape{4, 3, 3}));
  EXPECT_EQ(matrix_transpose(input({4, 3, 2})).shape(), (Shape{4, 2, 3}));
}

TEST(Linalg, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {"linalg_test.cc:", part}));
  };
  fails("[inv] takes square matrices in the last two dimensions, not f32[2,3]", [] {
    inv(input({2, 3}));
  });
  fails("[solve] matrices of size 3 (f32[3,3]) do not match the right-hand side f32[2,3]", [] {
    solve(input({3, 3}), input({2, 3}));
  });
  fails("[cross] dimension -1 of f32[4] does not have size 3",
        [] { cross(input({4}), input({4})); });
  fails("[diagonal] takes matrices, not f32[4]", [] { diagonal(input({4})); });
  fails("[matrix_norm] takes matrices, not f32[4]", [] { matrix_norm(input({4})); });
}

}  // namespace
}  // namespace meshard
