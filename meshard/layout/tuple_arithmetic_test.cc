#include "meshard/layout/tuple_arithmetic.h"

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using T = IntTuple;

TEST(TupleArithmetic, InnerProduct) {
  EXPECT_EQ(inner_product(T{2, 3}, T{4, 5}), 23);
  EXPECT_EQ(inner_product(T{T{2, 3}, 4}, T{T{2, 1}, 2}), 15);
  EXPECT_EQ(inner_product(6, 8), 48);
  EXPECT_EQ(inner_product(T(), T()), 0);
  for (const T& other : {T{2}, T(2), T{2, T{3}}})
    EXPECT_TRUE(throws_error(
        [&] {
          inner_product(T{3, 4}, other);
        },
        ErrorCode::kInvalidArgument, {"[inner_product]", "(3,4)", other.to_string(), "nesting"}));
  EXPECT_TRUE(throws_error([] { inner_product(std::int64_t{1} << 62, 2); },
                           ErrorCode::kInvalidArgument, {"64 bits"}));
}

// The value at a coordinate is the inner product of coordinate and stride.
TEST(TupleArithmetic, InnerProductEvaluatesLayouts) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Layout layout = random_signed_layout(random);
    IntVector digits;
    for (std::int64_t size : layout.shape().leaves()) digits.push_back(random.between(0, size - 1));
    IntTuple coordinate = layout.shape().with_leaves(digits);
    EXPECT_EQ(inner_product(coordinate, layout.stride()), layout(coordinate));
  }
}

TEST(TupleArithmetic, ElementwiseProduct) {
  EXPECT_EQ(elementwise_product(T{T{6, 2}, 3}, T{T{1, 6}, 0}), (T{T{6, 12}, 0}));
  EXPECT_EQ(elementwise_product(2, T{3, T{2, 2}}), T(24));
  EXPECT_EQ(elementwise_product(T(), T()), T());
  for (const T& other : {T{2}, T(2), T{2, 3, 4}})
    EXPECT_TRUE(throws_error(
        [&] {
          elementwise_product(T{3, 4}, other);
        },
        ErrorCode::kInvalidArgument, {"(3,4)", other.to_string()}));
}

TEST(TupleArithmetic, LargestAndSigns) {
  EXPECT_EQ(largest(T{T{2}, T{3, 5}, 4}), 5);
  EXPECT_EQ(largest(T{-3, -2}), -2);
  EXPECT_EQ(largest(T()), 0);
  EXPECT_EQ(signs(T{-3, T{0, 5}}), (T{-1, T{0, 1}}));
  EXPECT_EQ(signs(hole), T(-1));
}

TEST(TupleArithmetic, ShapeDivide) {
  auto text = [](const T& a, const T& b) { return shape_divide(a, b)->to_string(); };
  EXPECT_EQ(text(T{3, 4}, 6), "(1,2)");
  EXPECT_EQ(text(*T::parse("((6,2))"), 6), "((1,2))");
  EXPECT_EQ(text(T{6, T{3, 4}}, 36), "(1,(1,2))");
  EXPECT_EQ(text(T{6, T{3, 4}}, 1), "(6,(3,4))");
  EXPECT_EQ(text(T{6, T{3, 4}}, T{2, T{3, 8}}), "(3,(1,1))");
  EXPECT_EQ(text(2, T{3, T{2, 2}}), "1");
  for (auto [a, b] : {std::pair<T, T>{6, 8}, {T{5, 2}, 2}, {T{3, 4}, T{2}}, {T{4}, T{0}}, {6, 0}})
    EXPECT_TRUE(throws_error([&a = a, &b = b] { (void)shape_divide(a, b).value(); },
                             ErrorCode::kInvalidArgument, {"[shape_divide]"}));
}

TEST(TupleArithmetic, CompactStride) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    IntTuple shape = random_layout(random).shape();
    EXPECT_EQ(compact_stride(shape), Layout(shape).stride()) << shape.to_string();
  }
  EXPECT_EQ(compact_stride(T{T{2, 3}, T{2, 1, 2}, T{5, 2, 1}}).to_string(),
            "((120,40),(20,20,10),(2,1,1))");
  EXPECT_EQ(compact_stride(T{2, 4}, 3).to_string(), "(12,3)");
  EXPECT_EQ(compact_stride(T{T{2, 4}, 3}, T{10, 1}).to_string(), "((40,10),1)");
  EXPECT_EQ(compact_stride(*T::parse("((4))"), 0).to_string(), "((0))");
  for (const T& shape : {T(3), T{3, 4}})
    EXPECT_TRUE(throws_error([&] { compact_stride(shape, T{2}); }, ErrorCode::kInvalidArgument,
                             {"[compact_stride]", shape.to_string(), "(2)"}));
  std::int64_t large = std::int64_t{1} << 40;
  EXPECT_TRUE(throws_error(
      [&] {
        compact_stride(T{2, large, large});
      },
      ErrorCode::kInvalidArgument, {"64 bits"}));
}

}  // namespace
}  // namespace meshard
