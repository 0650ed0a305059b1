#include "meshard/ops/composite/dropout.h"

#include <gtest/gtest.h>

#include "meshard/ops/composite/random.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Dropout, KeepsTheMeanAndDropsTheRate) {
  Tensor key = random::key(3);
  std::vector<double> ones(4000, 1.0);
  std::vector<double> kept =
      interpret(dropout(from_host(ones, {4000}), 0.25, key)).to_vector<double>();
  int dropped = 0;
  for (double value : kept) {
    EXPECT_TRUE(value == 0 || value == 1 / 0.75) << value;
    dropped += value == 0;
  }
  // Binomial: 1000 with deviation 27.
  EXPECT_NEAR(dropped, 1000, 6 * 27);
  EXPECT_EQ(interpret(dropout(from_host(ones, {4000}), 0.25, key)).to_vector<double>(), kept)
      << "one key, one mask";
}

TEST(Dropout, ItsEnds) {
  Tensor x = from_host<float>({1, 2, 3}, {3}), key = random::key(0);
  EXPECT_EQ(interpret(dropout(x, 0, key)), HostArray::from_vector<float>({1, 2, 3}));
  EXPECT_EQ(interpret(dropout(x, 1, key)), HostArray::from_vector<float>({0, 0, 0}));
  EXPECT_EQ(dropout(input({4}, DType::bf16), 0.5, key).dtype(), DType::bf16);
  EXPECT_TRUE(throws_error([&] { dropout(x, 1.5, key); }, ErrorCode::kInvalidArgument,
                           {"dropout_test.cc:", "1.5"}));
  EXPECT_TRUE(throws_error([&] { dropout(x, 0.5, x); }, ErrorCode::kInvalidArgument, {"f32[3]"}));
}

}  // namespace
}  // namespace meshard
