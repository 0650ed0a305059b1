#include "meshard/ops/iota.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Iota, Emits) {
  EXPECT_EQ(emitted(iota(DType::u32, {2, 3}, -1)),
            R"(%0 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xui32>)");
}

TEST(Iota, ChecksItsDimension) {
  EXPECT_TRUE(throws_error(
      [] {
        iota(DType::i32, {2, 3}, 2);
      },
      ErrorCode::kOutOfRange, {"iota_test.cc", "[iota] dimension 2", "-2..1"}));
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
