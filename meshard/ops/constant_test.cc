#include "meshard/ops/constant.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/definition/attributes.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Constant, Emits) {
  EXPECT_EQ(emitted(constant(HostArray::scalar(2.5f))),
            "%0 = stablehlo.constant dense<2.5> : tensor<f32>");
}

TEST(Constant, AttributesPrintAndParse) {
  Tensor x = constant(HostArray::from_vector<std::int32_t>({1, -2, 3}));
  std::string text;
  x.value()->attributes()->print(text);
  auto parsed = x.value()->op().parse_attributes(text);
  ASSERT_TRUE(parsed.ok());
  const auto* read = dynamic_cast<const AttributesOf<ConstantAttributes>*>(parsed.value().get());
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->value().value, HostArray::from_vector<std::int32_t>({1, -2, 3}));
}

TEST(Iota, Emits) {
  EXPECT_EQ(emitted(iota(DType::u32, {2, 3}, -1)),
            R"(%0 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xui32>)");
}

// XLA's partitioner counts the elements of other devices in 32 bits.
TEST(Iota, NoDimensionOfMoreThanTwoToThe31IsCounted) {
  const std::int64_t two_to_31 = std::int64_t{1} << 31;
  EXPECT_EQ(emitted(iota(DType::f32, {two_to_31}, 0)).find("i64>"), std::string::npos);
  std::string text = emitted(iota(DType::f32, {2, 4 * two_to_31}, 1));
  EXPECT_NE(text.find("tensor<2x4096x2097152xi64>"), std::string::npos) << text;
  EXPECT_NE(text.find("iota_dimension = 2"), std::string::npos) << text;
  EXPECT_NE(text.find("-> tensor<2x8589934592xf32>"), std::string::npos) << text;
  EXPECT_EQ(text.find("slice"), std::string::npos) << text;
  // A prime number of elements.
  text = emitted(iota(DType::i64, {two_to_31 + 11}, 0));
  EXPECT_NE(text.find("slice"), std::string::npos) << text;
}

TEST(Iota, ChecksItsDimension) {
  EXPECT_TRUE(throws_error(
      [] {
        iota(DType::i32, {2, 3}, 2);
      },
      ErrorCode::kOutOfRange, {"constant_test.cc", "[iota] dimension 2", "-2..1"}));
  EXPECT_TRUE(throws_error([] { iota(DType::bool_, {2}, 0); }, ErrorCode::kInvalidArgument,
                           {"[iota]", "not bool"}));
}

TEST(Iota, AttributesPrintAndParse) {
  Tensor x = iota(DType::f32, {2, 3}, 1);
  std::string text;
  x.value()->attributes()->print(text);
  auto parsed = x.value()->op().parse_attributes(text);
  ASSERT_TRUE(parsed.ok());
  std::string again;
  parsed.value()->print(again);
  EXPECT_EQ(text, "dtype=f32, shape=[2, 3], dimension=1");
  EXPECT_EQ(again, text);
}

}  // namespace
}  // namespace meshard
