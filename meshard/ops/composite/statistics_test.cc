#include "meshard/ops/composite/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Statistics, OfKnownNumbers) {
  Tensor x = from_host<float>({2, 4, 4, 4, 5, 5, 7, 9}, {8});
  EXPECT_EQ(interpret(mean(x)).item<float>(), 5.0f);
  EXPECT_EQ(interpret(var(x)).item<float>(), 4.0f);
  EXPECT_EQ(interpret(std_dev(x)).item<float>(), 2.0f);
  EXPECT_FLOAT_EQ(interpret(var(x, {}, 1)).item<float>(), 32.0f / 7);
  Tensor m = from_host<double>({1, 3, 2, 6}, {2, 2});
  EXPECT_EQ(interpret(mean(m, 0, true)), HostArray::from_vector<double>({1.5, 4.5}, {1, 2}));
  EXPECT_EQ(interpret(var(m, 1)), HostArray::from_vector<double>({1, 4}));
}

TEST(Statistics, Dtypes) {
  EXPECT_EQ(mean(input({4}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(mean(input({4}, DType::bf16)).dtype(), DType::bf16);
  EXPECT_EQ(var(input({4}, DType::f64)).dtype(), DType::f64);
  EXPECT_TRUE(std::isnan(interpret(mean(input({0}))).item<float>()));
}

}  // namespace
}  // namespace meshard
