#include "meshard/pjrt/array_type.h"

#include <gtest/gtest.h>

#include <vector>

namespace meshard::pjrt {
namespace {

Result<ArrayType> make(std::vector<std::int64_t> dimensions) {
  return ArrayType::make(ElementType::kF32, dimensions);
}

TEST(ArrayType, PrintsAndParses) {
  for (const char* text : {"f32[2,3]", "s4[]", "pred[0]", "c128[1,2,3,4,5,6,7,8]"})
    EXPECT_EQ(ArrayType::parse(text).value().to_string(), text);
  for (const char* bad :
       {"f32", "f32[2", "f32[2,]", "f32[,2]", "f32[a]", "f32[-1]", "x[1]", "f32[2 3]"})
    EXPECT_FALSE(ArrayType::parse(bad).ok()) << bad;
}

TEST(ArrayType, RefusesWhatOverflows) {
  EXPECT_TRUE(make({1ll << 59}).ok());
  EXPECT_FALSE(make({1ll << 60, 2}).ok());
  EXPECT_FALSE(make({1ll << 32, 1ll << 32}).ok());
  EXPECT_FALSE(make({0, 1ll << 32, 1ll << 32}).ok()) << "the plugin multiplies the others too";
  EXPECT_FALSE(make({2, -3}).ok());
  EXPECT_FALSE(ArrayType::make(ElementType::kInvalid, {}).ok());
}

TEST(ArrayType, CountsAndHashes) {
  ArrayType type = make({2, 3}).value();
  EXPECT_EQ(type.element_count(), 6);
  EXPECT_EQ(type.host_size(), 24u);
  EXPECT_EQ(make({}).value().element_count(), 1);
  EXPECT_EQ(type.hash(), make({2, 3}).value().hash());
  EXPECT_NE(type, make({3, 2}).value());
}

}  // namespace
}  // namespace meshard::pjrt
