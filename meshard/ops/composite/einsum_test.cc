#include "meshard/ops/composite/einsum.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Shape shape(std::string_view spec, std::vector<Shape> shapes) {
  std::vector<Tensor> operands;
  for (Shape& each : shapes) operands.push_back(input(each));
  return einsum(spec, operands).shape();
}

// As NumPy answers.
TEST(Einsum, Shapes) {
  EXPECT_EQ(shape("ij,jk->ik", {{2, 3}, {3, 4}}), (Shape{2, 4}));
  EXPECT_EQ(shape("ij,jk->ki", {{2, 3}, {3, 4}}), (Shape{4, 2}));
  EXPECT_EQ(shape("ij,jk", {{2, 3}, {3, 4}}), (Shape{2, 4}));
  EXPECT_EQ(shape("ba", {{2, 3}}), (Shape{3, 2}));
  EXPECT_EQ(shape("ij->", {{2, 3}}), Shape{});
  EXPECT_EQ(shape("bhts, bhsk -> bthk", {{2, 3, 4, 5}, {2, 3, 5, 6}}), (Shape{2, 4, 3, 6}));
  EXPECT_EQ(shape("...ij,jk->...ik", {{7, 1, 2, 3}, {3, 4}}), (Shape{7, 1, 2, 4}));
  EXPECT_EQ(shape("...i,...i->...", {{7, 1, 2}, {5, 2}}), (Shape{7, 5}));
  EXPECT_EQ(shape("i...,j...", {{2, 7}, {3, 7}}), (Shape{7, 2, 3}));
  EXPECT_EQ(shape("ab,bc,cd->ad", {{2, 3}, {3, 4}, {4, 5}}), (Shape{2, 5}));
  EXPECT_EQ(shape("abc,cd->bad", {{2, 3, 4}, {4, 5}}), (Shape{3, 2, 5}));
  EXPECT_EQ(shape("i,j->ij", {{2}, {3}}), (Shape{2, 3}));
  EXPECT_EQ(shape("ij,k->k", {{2, 3}, {4}}), Shape{4});
}

TEST(Einsum, TakesDiagonals) {
  Tensor x = from_host<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(interpret(einsum("ii->i", {x})), HostArray::from_vector<float>({1, 4}));
  EXPECT_EQ(interpret(einsum("ii", {x})).item<float>(), 5.0f);
}

TEST(Einsum, Errors) {
  auto fails = [](std::string_view spec, std::vector<Shape> shapes,
                  std::vector<std::string> parts) {
    return throws_error([&] { shape(spec, shapes); }, ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails("ij,jk->ik", {{2, 3}, {4, 5}}, {"[einsum] sizes differ", "= 3", "= 4"}));
  EXPECT_TRUE(fails("ij->ij", {{2, 3}, {4, 5}}, {"2 operands are given, 1 are named"}));
  EXPECT_TRUE(fails("ij->ii", {{2, 3}}, {"names `i` twice", "\"ij->ii\""}));
  EXPECT_TRUE(fails("ij->k", {{2, 3}}, {"names `k`", "no operand"}));
  EXPECT_TRUE(fails("i1->i", {{2, 3}}, {"`i1`"}));
  EXPECT_TRUE(fails("ijk->i", {{2, 3}}, {"f32[2,3]", "rank 2", "names 3"}));
  EXPECT_TRUE(fails("i->i", {{2, 3}}, {"names 1"}));
  EXPECT_TRUE(fails("ii->i", {{2, 3}}, {"diagonal", "= 2", "= 3"}));
  EXPECT_TRUE(fails("...i->i", {{2, 3}}, {"no ellipsis"}));
}

}  // namespace
}  // namespace meshard
