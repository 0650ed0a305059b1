#include <gtest/gtest.h>

#include "meshard/ops/composite/conv.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Pooling, Types) {
  EXPECT_EQ(max_pool(input({1, 4, 6, 2}), {2, 2}).shape(), (Shape{1, 2, 3, 2}));
  EXPECT_EQ(max_pool(input({1, 2, 4, 6}), {2, 3}, {.layout = "NCHW"}).shape(), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(max_pool(input({1, 5, 2}), {3}, {.strides = {1}, .padding = Padding::kSame}).shape(),
            (Shape{1, 5, 2}));
  EXPECT_EQ(max_pool(input({1, 5, 2}), {2}, {.strides = {1}, .dilation = {2}}).shape(),
            (Shape{1, 3, 2}));
  EXPECT_EQ(avg_pool(input({1, 4, 2}, DType::i32), {2}).type().to_string(), "f32[1,2,2]");
  EXPECT_EQ(avg_pool(input({1, 4, 2}, DType::bf16), {2}).dtype(), DType::bf16);
}

TEST(Pooling, ErrorsHaveBothValues) {
  auto fails = [](const char* part, auto call) {
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, {"pooling_test.cc:", part}));
  };
  fails("[max_pool] the window [2, 2, 2] has 3 sizes, but f32[1,4,6,2] has 2 spatial dimensions",
        [] {
          max_pool(input({1, 4, 6, 2}), {2, 2, 2});
        });
  fails("[avg_pool] the layout \"NHWC\" has 4 letters, but f32[1,4,2] has rank 3", [] {
    avg_pool(input({1, 4, 2}), {2}, {.layout = "NHWC"});
  });
  fails("padding has 2 pairs for 1 spatial dimensions", [] {
    avg_pool(input({1, 4, 2}), {2}, {.padding = {{1, 1}, {1, 1}}});
  });
}

}  // namespace
}  // namespace meshard
