#include "meshard/array/shape.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Shape, AnswersQuestions) {
  Shape shape{8, 4, 2};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.size(), 64);
  EXPECT_EQ(shape[0], 8);
  EXPECT_EQ(shape[-1], 2);
  EXPECT_EQ(shape.strides(), (Dimensions{8, 2, 1}));
  EXPECT_EQ(shape.with(-2, 5), (Shape{8, 5, 2}));
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_TRUE(Shape{}.is_scalar());
  EXPECT_EQ((Shape{3, 0, 5}).size(), 0);
  EXPECT_EQ((Shape{3, 0, 5}).strides(), (Dimensions{5, 5, 1}));
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_TRUE(throws_error(
      [] {
        Shape{2, -1};
      },
      ErrorCode::kInvalidArgument, {"dimension 1 is negative", "[2, -1]"}));
  std::int64_t big = std::int64_t{1} << 32;
  EXPECT_TRUE(throws_error(
      [&] {
        (void)Shape{big, big}.size();
      },
      ErrorCode::kOutOfRange, {"[4294967296, 4294967296]"}));
  EXPECT_EQ((Shape{big, big, 0}).size(), 0);
  EXPECT_TRUE(throws_error(
      [&] {
        (void)TensorType{DType::f64, Shape{big, big / 8}}.bytes();
      },
      ErrorCode::kOutOfRange, {"f64[4294967296,536870912]"}));
  EXPECT_TRUE(throws_error(
      [] {
        (void)Shape{2, 3}[2];
      },
      ErrorCode::kOutOfRange, {"dimension 2 is outside -2..1"}));
}

TEST(Shape, PrintsAndParses) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{8, 4}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
    EXPECT_EQ(Shape::parse(shape.to_string()).value(), shape);
    TensorType type{DType::bf16, shape};
    EXPECT_EQ(TensorType::parse(type.to_string()).value(), type);
  }
  EXPECT_EQ((Shape{8, 4}).to_string(), "[8, 4]");
  EXPECT_EQ((TensorType{DType::f32, Shape{8, 4}}).to_string(), "f32[8,4]");
  EXPECT_EQ((TensorType{DType::bool_, Shape{}}).to_string(), "bool[]");
  EXPECT_EQ(Shape::parse(" [ 8,4 ] ").value(), (Shape{8, 4}));
  for (const char* bad :
       {"", "8, 4", "[8, 4", "[8 4]", "[8,]", "[,8]", "[-1]", "[8] x", "[99999999999999999999]"})
    EXPECT_FALSE(Shape::parse(bad).ok()) << bad;
  for (const char* bad : {"f32", "[8]", "f33[8]", "f32[8"})
    EXPECT_FALSE(TensorType::parse(bad).ok()) << bad;
}

TEST(Shape, HashesDiffer) {
  std::unordered_set<Shape> shapes;
  for (std::int64_t a = 0; a < 20; ++a)
    for (std::int64_t b = 0; b < 20; ++b) shapes.insert(Shape{a, b});
  EXPECT_EQ(shapes.size(), 400u);
  EXPECT_TRUE(shapes.contains(Shape{7, 11}));
  EXPECT_EQ((Shape{2, 3}).hash(), (Shape{2, 3}).hash());
  EXPECT_NE((Shape{2, 3}).hash(), (Shape{3, 2}).hash());
  EXPECT_NE((TensorType{DType::f32, Shape{2}}).hash(), (TensorType{DType::i32, Shape{2}}).hash());
}

TEST(NormalizeDimension, CountsFromTheEnd) {
  for (int d = 0; d < 4; ++d) {
    EXPECT_EQ(normalize_dimension(d, 4), d);
    EXPECT_EQ(normalize_dimension(d - 4, 4), d);
  }
  EXPECT_TRUE(throws_error([] { normalize_dimension(-3, 2, "concat"); }, ErrorCode::kOutOfRange,
                           {"[concat] dimension -3 is outside -2..1 (rank 2)"}));
  EXPECT_TRUE(throws_error([] { normalize_dimension(0, 0); }, ErrorCode::kOutOfRange, {"scalar"}));
}

TEST(TensorType, CountsBytes) {
  EXPECT_EQ((TensorType{DType::f32, Shape{8, 4}}).bytes(), 128);
  EXPECT_EQ((TensorType{DType::bool_, Shape{}}).bytes(), 1);
}

TEST(Shape, IsARangeOfItsDimensions) {
  Shape shape{16, 8};
  std::span<const std::int64_t> view(shape);
  ASSERT_EQ(view.size(), 2u) << "not the number of elements";
  EXPECT_EQ(view[1], 8);
  EXPECT_EQ(std::ranges::size(shape), 2u);
}

}  // namespace
}  // namespace meshard
