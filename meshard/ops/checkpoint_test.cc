#include "meshard/ops/checkpoint.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Checkpoint, ResultsAreTheBodys) {
  Tensor w = input({4});
  std::vector<Tensor> results = checkpoint_tensors({input({4})},
                                                   [&](std::span<const Tensor> x) {
                                                     return std::vector<Tensor>{add(x[0], w), x[0]};
                                                   },
                                                   {ResidualPolicy::Keep::kDots});
  ASSERT_EQ(results.size(), 2u);
  const Node& node = *results[0].value().node();
  EXPECT_EQ(node.operands()[1], w.value());
  EXPECT_EQ(node.attributes_as<CheckpointAttributes>().policy, "dots");
  EXPECT_TRUE(
      throws_error([&] { checkpoint_tensors({w}, [](auto) { return std::vector<Tensor>{}; }, {}); },
                   ErrorCode::kInvalidArgument, {"checkpoint_test.cc:", "returns nothing"}));
}

}  // namespace
}  // namespace meshard
