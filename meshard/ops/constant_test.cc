#include "meshard/ops/constant.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/definition/attributes.h"
#include "tests/support/emitted.h"

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

}  // namespace
}  // namespace meshard
