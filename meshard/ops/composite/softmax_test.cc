#include "meshard/ops/composite/softmax.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Softmax, Types) {
  EXPECT_EQ(softmax(input({4, 8})).type(), input({4, 8}).type());
  EXPECT_EQ(log_softmax(input({4, 8}, DType::bf16), 0).dtype(), DType::bf16);
  EXPECT_EQ(logsumexp(input({4, 8}), 0).shape(), Shape{8});
  EXPECT_EQ(logsumexp(input({4, 8}), -1, true).shape(), (Shape{4, 1}));
  EXPECT_EQ(logsumexp(input({4, 8}, DType::i32)).type(), (TensorType{DType::f32, {}}));
  EXPECT_TRUE(throws_error([] { softmax(input({4}), 1); }, ErrorCode::kOutOfRange,
                           {"softmax_test.cc:", "1"}));
}

}  // namespace
}  // namespace meshard
