#include "meshard/ops/composite/frequency.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Frequency, OfEvenAndOddSizes) {
  EXPECT_EQ(interpret(fftfreq(4, 0.5, DType::f64)),
            HostArray::from_vector<double>({0, 0.5, -1, -0.5}));
  EXPECT_EQ(interpret(fftfreq(5, 0.2, DType::f64)),
            HostArray::from_vector<double>({0, 1, 2, -2, -1}));
  EXPECT_EQ(interpret(fftfreq(1)), HostArray::from_vector<float>({0}));
  EXPECT_EQ(interpret(rfftfreq(4, 0.5, DType::f64)), HostArray::from_vector<double>({0, 0.5, 1}));
  EXPECT_EQ(interpret(rfftfreq(5, 0.2, DType::f64)), HostArray::from_vector<double>({0, 1, 2}));
}

TEST(Frequency, ZeroGoesToTheMiddleAndBack) {
  for (std::int64_t n : {1, 4, 5}) {
    Tensor cycles = fftfreq(n, 1.0 / static_cast<double>(n), DType::f64);
    std::vector<double> ascending = interpret(fftshift(cycles)).to_vector<double>();
    for (std::size_t i = 0; i < ascending.size(); ++i)
      EXPECT_EQ(ascending[i], static_cast<double>(i) - static_cast<double>(n / 2));
    EXPECT_EQ(interpret(ifftshift(fftshift(cycles))), interpret(cycles));
  }
  Tensor x = from_host<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  EXPECT_EQ(interpret(fftshift(x)), HostArray::from_vector<float>({5, 3, 4, 2, 0, 1}, {2, 3}));
  EXPECT_EQ(interpret(fftshift(x, 0)), HostArray::from_vector<float>({3, 4, 5, 0, 1, 2}, {2, 3}));
}

TEST(Frequency, Errors) {
  EXPECT_TRUE(throws_error([] { fftfreq(0); }, ErrorCode::kInvalidArgument,
                           {"frequency_test.cc:", "not 0"}));
  EXPECT_TRUE(
      throws_error([] { rfftfreq(4, 1, DType::i32); }, ErrorCode::kInvalidArgument, {"i32"}));
}

}  // namespace
}  // namespace meshard
