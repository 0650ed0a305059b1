#include "meshard/layout/int_tuple.h"

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(IntTuple, IntegerAndTupleOfOneDiffer) {
  IntTuple integer(2), tuple{2};
  EXPECT_TRUE(integer.is_integer());
  EXPECT_FALSE(tuple.is_integer());
  EXPECT_FALSE(integer == tuple);
  EXPECT_EQ(integer.depth(), 0u);
  EXPECT_EQ(tuple.depth(), 1u);
  EXPECT_EQ(integer.rank(), 1u);
  EXPECT_EQ(integer[0], integer);
}

TEST(IntTuple, ElementsOfNestedTuple) {
  IntTuple t{IntTuple{2, IntTuple{3, 4}}, 5, IntTuple()};
  EXPECT_EQ(t.to_string(), "((2,(3,4)),5,())");
  EXPECT_EQ(t.rank(), 3u);
  EXPECT_EQ(t.depth(), 3u);
  EXPECT_EQ(t.leaves().size(), 4u);
  EXPECT_EQ(t[0].to_string(), "(2,(3,4))");
  EXPECT_EQ(t[0][1][1].value(), 4);
  EXPECT_EQ(t[1].value(), 5);
  EXPECT_EQ(t[2], IntTuple());
  EXPECT_EQ(t.product(), 120);
  EXPECT_TRUE(throws_error([&] { (void)t[3]; }, ErrorCode::kOutOfRange, {"element 3"}));
}

TEST(IntTuple, Congruence) {
  EXPECT_TRUE((IntTuple{2, IntTuple{3, 4}}).congruent({7, IntTuple{8, 9}}));
  EXPECT_FALSE((IntTuple{2, IntTuple{3, 4}}).congruent({7, 8, 9}));
}

TEST(IntTuple, ProductThatDoesNotFit) {
  IntTuple t{std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_TRUE(throws_error([&] { t.product(); }, ErrorCode::kInvalidArgument, {"does not fit"}));
}

TEST(IntTuple, ParsesWhatItPrints) {
  for (const char* text : {"4", "-3", "()", "(4)", "(2,4)", "((2,2),(4,()),7)"}) {
    Result<IntTuple> parsed = IntTuple::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  EXPECT_EQ(IntTuple::parse(" ( 2 , 4 ) ").value(), (IntTuple{2, 4}));
  for (const char* text : {"", "(2", "2)", "(2,)", "(a)", "99999999999999999999"})
    EXPECT_FALSE(IntTuple::parse(text).ok()) << text;
}

TEST(IntTuple, DepthOfTextsIsBounded) {
  auto nested = [](int depth) {
    std::string open(static_cast<std::size_t>(depth), '('), close(open.size(), ')');
    return IntTuple::parse(open + "1" + close);
  };
  EXPECT_EQ(nested(kMaxParsedDepth)->depth(), static_cast<std::size_t>(kMaxParsedDepth));
  EXPECT_TRUE(throws_error([&] { (void)nested(kMaxParsedDepth + 1).value(); },
                           ErrorCode::kInvalidArgument, {"more than 100 levels deep"}));
  EXPECT_FALSE(nested(100'000).ok());
}

TEST(IntTuple, Holes) {
  IntTuple coordinate{2, IntTuple{hole, 3}};
  EXPECT_TRUE(has_hole(coordinate));
  EXPECT_TRUE(has_hole(hole));
  EXPECT_FALSE(has_hole({2, IntTuple{0, 3}}));
  EXPECT_FALSE(has_hole(IntTuple()));
  EXPECT_EQ(coordinate.to_string(), "(2,(_,3))");
  EXPECT_EQ(IntTuple::parse("(2,( _ ,3))").value(), coordinate);
  EXPECT_FALSE(IntTuple::parse("_2").ok());
}

TEST(IntTuple, HashFollowsEquality) {
  EXPECT_EQ((IntTuple{2, 4}).hash(), IntTuple::flat({2, 4}).hash());
  EXPECT_NE((IntTuple{2, 4}).hash(), IntTuple::parse("((2,4))")->hash());
}

TEST(Coordinate, LastModeIsFastest) {
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 6), (IntTuple{1, 2}));
  EXPECT_EQ(coordinate_of(IntTuple{IntTuple{2, 2}, 3}, 7), (IntTuple{IntTuple{1, 0}, 1}));
  EXPECT_EQ(coordinate_of(IntTuple{2, 4}, 9), (IntTuple{2, 1}));  // continues along the first mode
  EXPECT_EQ(coordinate_of(IntTuple(), 0), IntTuple());
  EXPECT_EQ(index_of(IntTuple{2, 4}, IntTuple{1, 2}), 6);
  EXPECT_EQ(index_of(IntTuple{IntTuple{2, 2}, 3}, IntTuple{2, 1}), 7);
}

// @post of coordinate_of
TEST(Coordinate, IndexOfCoordinateIsTheIndex) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    IntTuple shape = random_layout(random).shape();
    for (std::int64_t i = 0; i < shape.product(); ++i) {
      IntTuple coordinate = coordinate_of(shape, i);
      EXPECT_TRUE(coordinate.congruent(shape));
      EXPECT_EQ(index_of(shape, coordinate), i) << shape.to_string();
    }
  }
}

TEST(Coordinate, ThatDoesNotFit) {
  EXPECT_TRUE(throws_error(
      [] {
        index_of(IntTuple{2, 4}, IntTuple{1});
      },
      ErrorCode::kInvalidArgument, {"(1)", "(2,4)"}));
}

// @post of coordinate_of with strides
TEST(Coordinate, OfTheValuesOfOrthogonalLayouts) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_permuted_layout(random);
    const IntTuple &shape = layout.shape(), &stride = layout.stride();
    for (std::int64_t i = 0; i < layout.size(); ++i) {
      std::int64_t value = layout(i);
      ASSERT_EQ(value_of(coordinate_of(shape, stride, value), shape, stride), value)
          << layout.to_string();
    }
  }
}

TEST(Coordinate, WithStrides) {
  EXPECT_EQ(coordinate_of({2, 3, 4}, {12, 4, 1}, 14), (IntTuple{1, 0, 2}));
  EXPECT_EQ(coordinate_of(5, 3, 3), IntTuple(1));
  EXPECT_EQ(coordinate_of({2, IntTuple{3, 4}}, {12, IntTuple{4, 1}}, {13, 7}),
            (IntTuple{1, IntTuple{1, 3}}));
  EXPECT_EQ(coordinate_of(4, 1, 9), IntTuple(1));  // modulo the size
  EXPECT_EQ(value_of({1, 10}, {3, IntTuple{8, 6}}, {48, IntTuple{6, 1}}), 58);
  EXPECT_EQ(value_of({hole, 10}, {3, IntTuple{8, 6}}, {48, IntTuple{6, 1}}), 10);
  EXPECT_EQ(value_of(hole, {3, 4}, {4, 1}), 0);
  for (std::int64_t stride : {0, -1})
    EXPECT_TRUE(throws_error([&] { coordinate_of(4, stride, 3); }, ErrorCode::kInvalidArgument,
                             {"stride", std::to_string(stride)}));
  EXPECT_TRUE(throws_error([] { coordinate_of(IntTuple{2}, IntTuple(1), 0); },
                           ErrorCode::kInvalidArgument, {"(2)", "nesting"}));
  EXPECT_TRUE(throws_error(
      [] {
        coordinate_of({2, 3}, {3, 1}, {1, 1, 1});
      },
      ErrorCode::kInvalidArgument, {"(1,1,1)", "does not fit"}));
  EXPECT_TRUE(throws_error(
      [] {
        value_of({1, 1}, 4, 1);
      },
      ErrorCode::kInvalidArgument, {"(1,1)", "does not fit"}));
}

TEST(Coordinate, Conversion) {
  EXPECT_EQ(convert_coordinate(8, {IntTuple{2, 5}, IntTuple{3}}),
            (IntTuple{IntTuple{0, 2}, IntTuple{2}}));
  EXPECT_EQ(convert_coordinate(3, 4), IntTuple(3));
  EXPECT_EQ(convert_coordinate({1, 2}, {2, 3}), (IntTuple{1, 2}));
  EXPECT_EQ(convert_coordinate({1, 5}, {2, IntTuple{2, 3}}), (IntTuple{1, IntTuple{1, 2}}));
  EXPECT_EQ(convert_coordinate({3, 0}, 10, IntTuple{5, 2}), IntTuple(6));
  auto refuses = [](const IntTuple& coordinate, const IntTuple& destination, ErrorCode code,
                    const char* why) {
    return throws_error([&] { convert_coordinate(coordinate, destination); }, code, {why});
  };
  EXPECT_TRUE(refuses(9, 4, ErrorCode::kOutOfRange, "not an index of shape 4"));
  EXPECT_TRUE(refuses(6, {2, 3}, ErrorCode::kOutOfRange, "not an index of shape (2,3)"));
  EXPECT_TRUE(refuses(-1, 4, ErrorCode::kOutOfRange, "-1"));
  EXPECT_TRUE(refuses({1, 2}, 12, ErrorCode::kInvalidArgument, "without the shape"));
  EXPECT_TRUE(refuses({1, 2}, {2, 3, 4}, ErrorCode::kInvalidArgument, "does not fit"));
}

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
