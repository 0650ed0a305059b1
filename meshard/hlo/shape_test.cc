#include "meshard/hlo/shape.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

using pjrt::ElementType;

HloShape laid_out(ElementType element, std::vector<std::int64_t> dimensions,
                  std::vector<std::int64_t> minor_to_major,
                  std::vector<std::vector<std::int64_t>> tiles) {
  HloShape shape;
  shape.element = element;
  shape.dimensions = std::move(dimensions);
  shape.layout = HloLayout{.minor_to_major = std::move(minor_to_major), .tiles = std::move(tiles)};
  return shape;
}

// Sizes that libtpu's buffer assignment gives for these shapes.
TEST(HloShape, PaddedSizesAreTheBufferAssignments) {
  auto f32 = [](std::vector<std::int64_t> dimensions, std::vector<std::int64_t> order,
                std::vector<std::vector<std::int64_t>> tiles) {
    return laid_out(ElementType::kF32, std::move(dimensions), std::move(order), std::move(tiles))
        .padded_byte_size();
  };
  EXPECT_EQ(f32({12, 256}, {1, 0}, {{8, 128}}), 16 * 256 * 4);
  EXPECT_EQ(f32({12, 2, 128, 1}, {2, 1, 3, 0}, {{2, 128}}), 12 * 2 * 128 * 4);
  EXPECT_EQ(f32({2, 100}, {1, 0}, {{8, 128}}), 4096);
  EXPECT_EQ(f32({2, 100}, {0, 1}, {{8, 128}}), 104 * 128 * 4);
  EXPECT_EQ(f32({}, {}, {{128}}), 512);
  EXPECT_EQ(f32({3, 5}, {1, 0}, {}), 60);
  EXPECT_EQ(laid_out(ElementType::kBf16, {12, 256, 1, 64}, {1, 3, 2, 0}, {{8, 128}, {2, 1}})
                .padded_byte_size(),
            12 * 64 * 256 * 2);
  EXPECT_EQ(laid_out(ElementType::kBf16, {3, 100}, {1, 0}, {{4, 128}, {2, 1}}).padded_byte_size(),
            4 * 128 * 2);
  EXPECT_EQ(laid_out(ElementType::kPred, {}, {}, {{512}}).padded_byte_size(), 512);
}

TEST(HloShape, OwnElementBitsAndJoinedDimensions) {
  HloShape shape = laid_out(ElementType::kS4, {8, 8}, {1, 0}, {});
  EXPECT_EQ(shape.padded_byte_size(), 32);
  shape.layout->element_bits = 8;
  EXPECT_EQ(shape.padded_byte_size(), 64);
  // [3, 5, 100] in tiles of (all rows together, 128): 15 rows in blocks of 4.
  EXPECT_EQ(laid_out(ElementType::kF32, {3, 5, 100}, {2, 1, 0}, {{HloLayout::kCombine, 4, 128}})
                .padded_byte_size(),
            16 * 128 * 4);
}

TEST(HloShape, ATuplesSizeIsThatOfItsParts) {
  HloShape tuple;
  tuple.is_tuple = true;
  tuple.tuple = {laid_out(ElementType::kF32, {2, 100}, {1, 0}, {{8, 128}}),
                 laid_out(ElementType::kF32, {4}, {0}, {})};
  EXPECT_EQ(tuple.padded_byte_size(), 4096 + 16);
  EXPECT_EQ(tuple.byte_size(), 800 + 16);
  EXPECT_TRUE(tuple.in_main_memory());
  tuple.tuple[0].layout->memory_space = 1;
  EXPECT_FALSE(tuple.in_main_memory());
}

TEST(HloShape, DamagedSizesStopAtABound) {
  constexpr std::int64_t kMost = std::int64_t{1} << 52;
  EXPECT_LE(laid_out(ElementType::kF32, {INT64_MAX, INT64_MAX}, {1, 0}, {{INT64_MAX, 128}})
                .padded_byte_size(),
            kMost);
  EXPECT_EQ(laid_out(ElementType::kF32, {-5, 3}, {1, 0}, {{8, 128}}).byte_size(), 0);
  EXPECT_EQ(laid_out(ElementType::kF32, {2, 3}, {7, -1}, {}).padded_byte_size(), 24);
}

}  // namespace
}  // namespace meshard
