#include "meshard/ops/vary.h"

#include <gtest/gtest.h>

#include "meshard/ops/composite/create.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Vary, CountsAsOneOnEachDevice) {
  Tensor x = local_input({2});
  Tensor wide = vary(x, {"x", "y"});
  EXPECT_EQ(varying(wide), R"({"x", "y"})");
  EXPECT_EQ(vary(x, "x").value(), x.value()) << "it varies already";
}

TEST(Vary, WidenedMakesFreeValuesLocal) {
  Tensor x = vary(local_input({2}), "y");
  Tensor local = widened(zeros({3}), *manual_axes(x.value()));
  EXPECT_EQ(varying(local), R"({"x", "y"})");
  EXPECT_EQ(local.shape(), (Shape{3}));
}

TEST(Vary, Errors) {
  EXPECT_TRUE(throws_error([] { vary(local_input({2}), "z"); }, ErrorCode::kInvalidArgument,
                           {"no axis \"z\"", "vary_test.cc:"}));
  EXPECT_TRUE(throws_error([] { vary(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"[vary]", "is a full value"}));
}

}  // namespace
}  // namespace meshard
