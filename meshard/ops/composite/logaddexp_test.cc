#include "meshard/ops/composite/logaddexp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Logaddexp, IsTheLogarithmOfTheSum) {
  std::vector<double> a{0, -1, 3, 0.5}, b{0, 2, -4, 0.25};
  std::vector<double> got =
      interpret(logaddexp(from_host(a, {4}), from_host(b, {4}))).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(got[i], std::log(std::exp(a[i]) + std::exp(b[i])), 1e-12) << i;
}

TEST(Logaddexp, NeverOverflows) {
  const double kInf = INFINITY;
  Tensor a = from_host<double>({1000, -1000, -kInf, -kInf, kInf, 1}, {6});
  Tensor b = from_host<double>({1000, -1000, 5, -kInf, kInf, -kInf}, {6});
  std::vector<double> got = interpret(logaddexp(a, b)).to_vector<double>();
  EXPECT_NEAR(got[0], 1000 + std::log(2.0), 1e-12);
  EXPECT_NEAR(got[1], -1000 + std::log(2.0), 1e-12);
  EXPECT_EQ(got[2], 5);
  EXPECT_EQ(got[3], -kInf);
  EXPECT_EQ(got[4], kInf);
  EXPECT_EQ(got[5], 1);
}

TEST(Logaddexp, RefusesComplexNumbers) {
  Tensor x = from_host(HostArray::zeros({DType::c64, Shape{2}}));
  EXPECT_TRUE(throws_error([&] { logaddexp(x, 1); }, ErrorCode::kInvalidArgument,
                           {"[logaddexp] takes real numbers, not c64[2]"}));
}

TEST(Logaddexp, ComputesIntegersInF32) {
  EXPECT_EQ(logaddexp(from_host<std::int32_t>({1}, {1}), 2).dtype(), DType::f32);
  // 3 - 5 and 0 - 1 do not fit u8, and 127 + 128 does not fit i8.
  std::vector<float> bytes = interpret(logaddexp(from_host<std::uint8_t>({3, 0}, {2}),
                                                 from_host<std::uint8_t>({5, 1}, {2})))
                                 .to_vector<float>();
  EXPECT_NEAR(bytes[0], std::log(std::exp(3.0) + std::exp(5.0)), 1e-5);
  EXPECT_NEAR(bytes[1], std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(interpret(logaddexp(from_host<std::int8_t>({127}, {1}), -128)).to_vector<float>()[0],
            127);
  EXPECT_EQ(logaddexp(from_host<bool>({true}, {1}), false).dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
