#include "meshard/ops/pure_callback.h"

#include <gmock/gmock.h>

#include "meshard/graph/effects.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

const TensorType kOfTwo{DType::f32, {2}};

std::vector<HostArray> first(std::span<const HostArray> arguments) { return {arguments[0]}; }

TEST(PureCallback, IsCalledAtOnceOutsideOfFunctions) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor y = pure_callback(first, {x}, {kOfTwo})[0];
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(PureCallback, IsRecordedInside) {
  internal::EffectScope scope;
  std::vector<Tensor> results = pure_callback(first, {input({2})}, {kOfTwo, {DType::i32, {}}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].type(), (TensorType{DType::i32, {}}));
  std::string text = emitted(results[0]);
  EXPECT_THAT(text, HasSubstr("has_side_effect = false"));
  EXPECT_THAT(text, HasSubstr("kind = \"function\", function = \""));
}

TEST(PureCallback, ChecksWhatTheFunctionReturns) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  EXPECT_TRUE(throws_error(
      [&] {
        pure_callback(first, {x}, {{DType::f64, {2}}});
      },
      ErrorCode::kInvalidArgument, {"result 0", "f32[2], not f64[2]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        pure_callback(first, {x}, {kOfTwo, kOfTwo});
      },
      ErrorCode::kInvalidArgument, {"returned 1 arrays", "is 2"}));
  EXPECT_TRUE(throws_error([&] { pure_callback(first, {x}, {}); }, ErrorCode::kInvalidArgument,
                           {"at least one result type"}));
}

TEST(PureCallback, FunctionsHaveNumbersInThisProcess) {
  EXPECT_TRUE(throws_error([] { (void)internal::call_host_function(1 << 20, {}, {}); },
                           ErrorCode::kFailedPrecondition, {"no function number 1048576"}));
}

}  // namespace
}  // namespace meshard
