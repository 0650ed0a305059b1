#include "meshard/lowering/internal/only_padding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

bool keeps_nothing(const Tensor& x) { return keeps_only_padding(*x.value().node()); }

TEST(OnlyPadding, IsASliceBesideThePaddedElements) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4, 3}}, std::nullopt, {});
  Tensor padded = pad(x, 1, {0, 2}, {3, 1}, {1, 0});  // rows 0, 2, 4, 6 of 10; columns 2 to 4 of 6
  EXPECT_TRUE(keeps_nothing(slice(padded, {7, 0}, {10, 6}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(slice(padded, {0, 0}, {10, 2}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(slice(padded, {0, 5}, {10, 6}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(slice(padded, {6, 0}, {10, 6}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(slice(padded, {0, 4}, {10, 6}, {1, 1})));
  EXPECT_TRUE(keeps_nothing(pad(padded, 1, {0, -5}, {0, 0})));
  EXPECT_TRUE(keeps_nothing(pad(padded, 1, {0, 0}, {0, -4})));
  EXPECT_FALSE(keeps_nothing(pad(padded, 1, {0, -4}, {0, 3})));
  EXPECT_FALSE(keeps_nothing(slice(x, {0, 0}, {1, 1}, {1, 1})));
  EXPECT_FALSE(keeps_nothing(padded));
}

}  // namespace
}  // namespace meshard
