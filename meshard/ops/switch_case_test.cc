#include "meshard/ops/switch_case.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(SwitchCase, EachBranchHasItsOwnCapturedValues) {
  Tensor a = input({4}), b = input({4});
  std::vector<BodyFunction> branches{
      [&](std::span<const Tensor> x) { return std::vector<Tensor>{add(x[0], a)}; },
      [&](std::span<const Tensor> x) { return std::vector<Tensor>{add(add(x[0], a), b)}; }};
  Tensor result = switch_tensors(input({}, DType::i32), branches, {input({4})})[0];
  const Node& node = *result.value().node();
  ASSERT_EQ(node.operands().size(), 5u);  // index, argument, a, a, b
  EXPECT_EQ(node.operands()[4], b.value());
  EXPECT_EQ(result.shape(), (Shape{4}));
}

TEST(SwitchCase, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  std::vector<BodyFunction> unlike{
      [](std::span<const Tensor> x) { return std::vector<Tensor>{x[0]}; },
      [](std::span<const Tensor> x) { return std::vector<Tensor>{astype(x[0], DType::f64)}; }};
  EXPECT_TRUE(throws_error([&] { switch_tensors(0, unlike, {input({4})}); }, invalid,
                           {"switch_case_test.cc:", "branch 0 is f32[4]", "branch 1 f64[4]"}));
  EXPECT_TRUE(throws_error([&] { switch_tensors(input({2}, DType::i32), unlike, {}); }, invalid,
                           {"index", "i32[2]"}));
  EXPECT_TRUE(throws_error([&] { switch_tensors(0, {}, {}); }, invalid, {"at least one branch"}));
}

}  // namespace
}  // namespace meshard
