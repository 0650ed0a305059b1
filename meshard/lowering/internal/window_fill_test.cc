// tests/e2e/mesh_test.cc runs programs whose windows have different fill values.
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/internal/partitioner_needs.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

std::string fill(const Tensor& x, std::size_t operand = 0) {
  return window_fill(*x.value().node(), operand);
}

TEST(WindowFill, IsEqualForEqualConstants) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4}}, std::nullopt, {});
  Tensor s = make_parameter({DType::f32, {}}, std::nullopt, {});
  EXPECT_EQ(fill(pad(x, 1, {1}, {0})), fill(pad(x, 1, {0}, {3})));
  EXPECT_NE(fill(pad(x, 1, {1}, {0})), fill(pad(x, 2, {1}, {0})));
  EXPECT_NE(fill(pad(x, s, {1}, {0})), fill(pad(x, s + 1, {1}, {0})));
  EXPECT_EQ(fill(pad(x, s, {1}, {0})), fill(pad(x, s, {0}, {1})));
  EXPECT_EQ(fill(pad(x, 0, {1}, {0})), kZeroFill);
  EXPECT_EQ(fill(pad(x, 0, {1}, {0}), 1), "") << "the fill value itself";
  EXPECT_EQ(fill(x * 2), "");
}

TEST(WindowFill, OfReductionsIsThatOfTheOp) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4}}, std::nullopt, {});
  EXPECT_EQ(fill(reduce_window_max(x, {2})), fill(reduce_window_max(x, {3})));
  EXPECT_NE(fill(reduce_window_max(x, {2})), fill(reduce_window_min(x, {2})));
  EXPECT_NE(fill(cumulative_sum(x, 0)), fill(cumulative_max(x, 0)));
}

TEST(WindowFill, TheWindowedTypeIsWithoutWhatNegativeEdgesRemove) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4, 7}}, std::nullopt, {});
  auto shape = [](const Tensor& t) { return windowed_type(*t.value().node()).shape; };
  EXPECT_EQ(shape(pad(x, 1, {1, 2}, {0, 0})), Shape({4, 7}));
  EXPECT_EQ(shape(pad(x, 1, {-1, 2}, {3, -2})), Shape({3, 5}));
  EXPECT_EQ(shape(pad(x, 1, {0, -3}, {0, 0}, {0, 1})), Shape({4, 5}))
      << "elements 0 and 1, with gaps";
  EXPECT_EQ(shape(cumulative_sum(x, 0)), Shape({4, 7}));
}

TEST(WindowFill, GroupsAreNumberedForEachType) {
  WindowFills fills;
  TensorType a{DType::f32, {4}}, b{DType::f32, {5}};
  EXPECT_EQ(fills.group(a, "0"), 0u);
  EXPECT_EQ(fills.group(a, "1"), 1u);
  EXPECT_EQ(fills.group(b, "1"), 0u);
  EXPECT_EQ(fills.group(a, "0"), 0u);
  EXPECT_EQ(fills.group(a, "2"), 2u);
}

}  // namespace
}  // namespace meshard
