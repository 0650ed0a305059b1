#include "meshard/ops/composite/assign.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Assign, RebindsTheHandleOnly) {
  HostArray before = HostArray::full({DType::f32, {2}}, 1),
            after = HostArray::full({DType::f32, {2}}, 2);
  Tensor x = from_host(before), copy = x;
  assign(x, after);
  EXPECT_EQ(x.to_host(), after);
  EXPECT_EQ(copy.to_host(), before);
  EXPECT_EQ(x.where().line, static_cast<unsigned>(__LINE__ - 3));
}

TEST(Assign, AnotherTypeIsAnErrorWithBoth) {
  Tensor x = input({2, 3});
  EXPECT_TRUE(throws_error(
      [&] {
        assign(x, HostArray::zeros({DType::f32, {3, 2}}));
      },
      ErrorCode::kInvalidArgument, {"assign_test.cc:", "[assign]", "f32[3,2]", "f32[2,3]"}));
}

}  // namespace
}  // namespace meshard
