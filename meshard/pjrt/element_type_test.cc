#include <gtest/gtest.h>

#include "meshard/pjrt/array_type.h"

namespace meshard::pjrt {
namespace {

TEST(ElementType, WhatIsPrintedParses) {
  int arrays = 0;
  for (int i = 0; i < 40; ++i) {
    auto type = static_cast<ElementType>(i);
    if (!is_array_type(type)) continue;
    ++arrays;
    EXPECT_EQ(parse_element_type(to_string(type)).value(), type);
  }
  EXPECT_EQ(arrays, 28);
  EXPECT_EQ(parse_element_type("i1").value(), ElementType::kPred);
  EXPECT_EQ(parse_element_type("ui32").value(), ElementType::kU32);
  EXPECT_EQ(parse_element_type("f8E4M3FN").value(), ElementType::kF8E4M3Fn);
  EXPECT_EQ(parse_element_type("complex<f64>").value(), ElementType::kC128);
  for (const char* bad : {"", "f31", "token", "invalid", "tensor"})
    EXPECT_FALSE(parse_element_type(bad).ok()) << bad;
}

TEST(ElementType, WidthsAndHostBytes) {
  EXPECT_EQ(bit_width(ElementType::kS4), 4);
  EXPECT_EQ(host_bytes(ElementType::kS4), 1u);
  EXPECT_EQ(host_bytes(ElementType::kPred), 1u);
  EXPECT_EQ(host_bytes(ElementType::kBf16), 2u);
  EXPECT_EQ(host_bytes(ElementType::kC128), 16u);
  EXPECT_EQ(host_bytes(static_cast<ElementType>(-1)), 0u);
}

}  // namespace
}  // namespace meshard::pjrt
