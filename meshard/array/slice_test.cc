#include "meshard/array/slice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

struct Case {
  Shape whole;
  Box box;
  std::size_t width;
};

Case random_case(TestRandom& random) {
  Dimensions sizes;
  Box box;
  for (std::int64_t d = random.between(0, 5); d > 0; --d) {
    std::int64_t size = random.between(0, 12) == 0 ? 0 : random.between(1, 7);
    std::int64_t start = random.between(0, size), stop = random.between(start, size);
    if (random.between(0, 2) == 0) start = 0, stop = size;
    sizes.push_back(size);
    box.push_back({start, stop});
  }
  const std::size_t widths[] = {1, 2, 4, 8, 3};
  return {Shape(sizes), box, widths[random.between(0, 4)]};
}

// Calls visit(offset in the whole, offset in the box), in elements, for every element of the box.
template <class Visit>
void each_element(const Shape& whole, const Box& box, Visit visit) {
  std::int64_t count = box_shape(box).size();
  for (std::int64_t dense = 0; dense < count; ++dense) {
    std::int64_t rest = dense, offset = 0;
    Dimensions strides = whole.strides();
    for (std::size_t d = box.size(); d-- > 0;) {
      offset += (box[d].start + rest % box[d].size()) * strides[d];
      rest /= box[d].size();
    }
    visit(static_cast<std::size_t>(offset), static_cast<std::size_t>(dense));
  }
}

std::vector<unsigned char> noise(std::size_t bytes, TestRandom& random) {
  std::vector<unsigned char> data(bytes);
  for (unsigned char& byte : data) byte = static_cast<unsigned char>(random.between(0, 255));
  return data;
}

TEST(PlanGather, EqualsTheElementLoop) {
  TestRandom random;
  for (int i = 0; i < 2000; ++i) {
    Case c = random_case(random);
    auto whole = noise(static_cast<std::size_t>(c.whole.size()) * c.width, random);
    auto bytes = static_cast<std::size_t>(box_shape(c.box).size()) * c.width;
    std::vector<unsigned char> expected(bytes, 0), whole_copy(bytes, 0), pieces(bytes, 0);
    each_element(c.whole, c.box, [&](std::size_t from, std::size_t to) {
      std::memcpy(&expected[to * c.width], &whole[from * c.width], c.width);
    });
    StridedCopy plan = plan_gather(whole.data(), c.whole, c.box, c.width, whole_copy.data());
    plan.run();
    ASSERT_EQ(whole_copy, expected) << c.whole.to_string();
    EXPECT_EQ(plan.bytes(), static_cast<std::int64_t>(bytes));

    plan = plan_gather(whole.data(), c.whole, c.box, c.width, pieces.data());
    std::int64_t limit = random.between(1, 200), total = 0;
    for (const StridedCopy& piece : plan.split(limit)) {
      EXPECT_LE(piece.bytes(), std::max({limit, std::int64_t{64}}));
      total += piece.bytes();
      piece.run();
    }
    ASSERT_EQ(pieces, expected);
    EXPECT_EQ(total, plan.bytes());  // so no byte is written twice
  }
}

TEST(PlanScatter, WritesTheBoxAndNothingElse) {
  TestRandom random;
  for (int i = 0; i < 2000; ++i) {
    Case c = random_case(random);
    auto dense = noise(static_cast<std::size_t>(box_shape(c.box).size()) * c.width, random);
    auto actual = noise(static_cast<std::size_t>(c.whole.size()) * c.width, random);
    auto expected = actual;
    each_element(c.whole, c.box, [&](std::size_t to, std::size_t from) {
      std::memcpy(&expected[to * c.width], &dense[from * c.width], c.width);
    });
    plan_scatter(dense.data(), actual.data(), c.whole, c.box, c.width).run();
    ASSERT_EQ(actual, expected) << c.whole.to_string();
  }
}

TEST(PlanCopy, MovesBetweenBoxes) {
  TestRandom random;
  for (int i = 0; i < 1000; ++i) {
    Case c = random_case(random);
    Dimensions target;
    Box there;
    for (const DimensionSlice& slice : c.box) {
      std::int64_t before = random.between(0, 2);
      there.push_back({before, before + slice.size()});
      target.push_back(before + slice.size() + random.between(0, 2));
    }
    Shape target_shape(target);
    auto source = noise(static_cast<std::size_t>(c.whole.size()) * c.width, random);
    auto actual = noise(static_cast<std::size_t>(target_shape.size()) * c.width, random);
    auto expected = actual;
    std::vector<std::size_t> from;
    each_element(c.whole, c.box, [&](std::size_t offset, std::size_t) { from.push_back(offset); });
    each_element(target_shape, there, [&](std::size_t to, std::size_t k) {
      std::memcpy(&expected[to * c.width], &source[from[k] * c.width], c.width);
    });
    plan_copy(source.data(), c.whole, c.box, actual.data(), target_shape, there, c.width).run();
    ASSERT_EQ(actual, expected);
  }
}

TEST(StridedCopy, StreamedRowsAreTheSame) {
  TestRandom random;
  for (int i = 0; i < 200; ++i) {
    Shape whole{3, 5, random.between(300, 900)};
    std::int64_t start = random.between(0, 99);
    Box box{{random.between(0, 1), 3}, {0, random.between(1, 5)}, {start, whole[2]}};
    auto dense = noise(static_cast<std::size_t>(box_shape(box).size()), random);
    std::vector<unsigned char> cached(static_cast<std::size_t>(whole.size()), 0), streamed(cached);
    plan_scatter(dense.data(), cached.data(), whole, box, 1).run();
    plan_scatter(dense.data(), streamed.data(), whole, box, 1).run(CopyWrites::kStreamed);
    ASSERT_EQ(cached, streamed) << box_shape(box).to_string();
    plan_gather(streamed.data(), whole, box, 1, dense.data()).run(CopyWrites::kStreamed);
    auto again = dense;
    plan_gather(cached.data(), whole, box, 1, again.data()).run();
    ASSERT_EQ(dense, again);
  }
}

TEST(PlanGather, JoinsContiguousDimensions) {
  std::vector<float> whole(8 * 4 * 6), dense(whole.size());
  auto plan = [&](Box box) {
    return plan_gather(whole.data(), Shape{8, 4, 6}, box, 4, dense.data());
  };
  StridedCopy rows = plan({{2, 4}, {0, 4}, {0, 6}});
  EXPECT_EQ(rows.row_bytes, 2 * 4 * 6 * 4);
  EXPECT_TRUE(rows.levels.empty());
  EXPECT_EQ(rows.source - reinterpret_cast<std::byte*>(whole.data()), 2 * 4 * 6 * 4);
  StridedCopy columns = plan({{0, 8}, {0, 4}, {3, 6}});
  EXPECT_EQ(columns.row_bytes, 3 * 4);
  ASSERT_EQ(columns.levels.size(), 1u);
  EXPECT_EQ(columns.levels[0], (StridedCopy::Level{32, 24, 12}));
  EXPECT_EQ(plan({{1, 3}, {1, 3}, {1, 3}}).levels.size(), 2u);
  EXPECT_EQ(plan({{1, 1}, {1, 3}, {1, 3}}).bytes(), 0);
}

TEST(CheckBox, NamesTheDimension) {
  check_box({{0, 2}, {1, 1}}, Shape{2, 3});
  EXPECT_TRUE(throws_error(
      [] {
        check_box({{0, 2}, {1, 4}}, Shape{2, 3}, "slice");
      },
      ErrorCode::kOutOfRange, {"1:4", "dimension 1", "0:3", "[2, 3]"}));
  EXPECT_TRUE(throws_error(
      [] {
        check_box({{0, 2}}, Shape{2, 3});
      },
      ErrorCode::kInvalidArgument, {"1 dimensions", "[2, 3]"}));
}

}  // namespace
}  // namespace meshard
