#include "meshard/ops/while_loop.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/op_testutil.h"
#include "meshard/ops/reduction.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(WhileLoop, OperandsAreCarriesAndWhatBothCapture) {
  Tensor limit = input({}), step = input({4});
  std::vector<Tensor> results = while_tensors(
      [&](std::span<const Tensor> c) { return std::vector<Tensor>{less(sum(c[0]), limit)}; },
      [&](std::span<const Tensor> c) { return std::vector<Tensor>{add(c[0], step)}; },
      {input({4})});
  const Node& node = *results[0].value().node();
  ASSERT_EQ(node.operands().size(), 3u);
  EXPECT_EQ(node.operands()[1], limit.value());
  EXPECT_EQ(node.operands()[2], step.value());
  EXPECT_EQ(rule_of(results[0]), "([i], [], [j])->([i]) {i=4, j=4}");
}

TEST(WhileLoop, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  BodyFunction same = [](std::span<const Tensor> c) { return std::vector<Tensor>{c[0]}; };
  EXPECT_TRUE(throws_error([&] { while_tensors(same, same, {input({4})}); }, invalid,
                           {"while_loop_test.cc:", "the condition returns f32[4]", "bool"}));
  EXPECT_TRUE(throws_error(
      [&] {
        while_tensors(
            [](std::span<const Tensor> c) { return std::vector<Tensor>{less(sum(c[0]), 3)}; },
            [](std::span<const Tensor> c) { return std::vector<Tensor>{astype(c[0], DType::f64)}; },
            {input({4})});
      },
      invalid, {"carry 0", "f32[4]", "f64[4]"}));
}

}  // namespace
}  // namespace meshard
