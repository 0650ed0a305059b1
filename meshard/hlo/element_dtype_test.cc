#include <gtest/gtest.h>

#include "meshard/hlo/shape.h"

namespace meshard {
namespace {

TEST(ElementDType, DTypesGoThereAndBack) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_of_element(element_type_of(dtype)).value(), dtype);
  }
  EXPECT_EQ(element_type_of(DType::bf16), pjrt::ElementType::kBf16);
  EXPECT_EQ(element_type_of(DType::u16), pjrt::ElementType::kU16);
  EXPECT_EQ(dtype_of_element(pjrt::ElementType::kToken).error().code(), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace meshard
