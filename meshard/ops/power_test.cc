#include "meshard/ops/power.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Pow, DerivativeExistsAtZero) {
  // d/da a^b = b a^(b-1): at a = 0 it is 0 for b = 0 and b = 2, and 1 for b = 1. d/db is 0 there.
  Tensor result = pow(from_host<double>({0, 0, 0}, {3}), from_host<double>({0, 1, 2}, {3}));
  std::vector<Tensor> slopes = recorded_vjp(result, from_host<double>({1, 1, 1}, {3}));
  EXPECT_EQ(interpret(slopes[0]), HostArray::from_vector<double>({0, 1, 0}));
  EXPECT_EQ(interpret(slopes[1]), HostArray::from_vector<double>({0, 0, 0}));
}

TEST(Pow, IntegersStayIntegers) {
  EXPECT_EQ(pow(from_host<std::int32_t>({2, 3}, {2}), 2).dtype(), DType::i32);
}

TEST(Pow, AnIntegerToANegativePowerIsAnError) {
  EXPECT_TRUE(throws_error([] { (void)pow(from_host<std::int32_t>({2}, {1}), -2); },
                           ErrorCode::kInvalidArgument, {"-2", "float", "power_test.cc:"}));
}

}  // namespace
}  // namespace meshard
