#include "meshard/stablehlo/types.h"

#include <gtest/gtest.h>

namespace meshard::stablehlo {
namespace {

std::string number(std::int64_t value) {
  std::string out;
  append_number(out, value);
  return out;
}
std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

// From the specification, "Types": a scalar tensor has no sizes; unsigned integers are `ui`,
// booleans `i1`.
TEST(Types, AreSpelledAsInTheSpecification) {
  EXPECT_EQ(type_text({DType::f32, {}}), "tensor<f32>");
  EXPECT_EQ(type_text({DType::f32, {8, 4}}), "tensor<8x4xf32>");
  EXPECT_EQ(type_text({DType::bool_, {3}}), "tensor<3xi1>");
  EXPECT_EQ(type_text({DType::u32, {0, 12}}), "tensor<0x12xui32>");
  EXPECT_EQ(type_text({DType::f8e4m3fn, {1024}}), "tensor<1024xf8E4M3FN>");
}

TEST(Types, AreRead) {
  EXPECT_EQ(parse_type("tensor<16x32xbf16>")->to_string(), "bf16[16,32]");
  EXPECT_EQ(parse_type("tensor<f32>")->to_string(), "f32[]");
  for (const char* other : {"tensor<?x2xf32>", "i32", "tensor<2xcomplex<i32>>", "tensor<2x",
                            "tensor<99999999999x99999999999xf32>"})
    EXPECT_EQ(parse_type(other), std::nullopt) << other;
}

TEST(Types, Numbers) {
  for (std::int64_t value :
       {std::int64_t{0}, std::int64_t{9}, std::int64_t{10}, std::int64_t{-7}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(number(value), std::to_string(value));
}

TEST(Types, QuotesAreEscaped) {
  EXPECT_EQ(quoted("a.b"), "\"a.b\"");
  EXPECT_EQ(quoted("w[\"q\"]\\\n\xC3"), "\"w[\\\"q\\\"]\\\\\\0A\\C3\"");
}

TEST(Types, SymbolsAreQuotedWhereNeeded) {
  for (const auto& [name, text] :
       {std::pair("f", "@f"), std::pair("_a.b$1", "@_a.b$1"), std::pair("1f", "@\"1f\""),
        std::pair("a-b", "@\"a-b\""), std::pair("", "@\"\"")}) {
    std::string out;
    append_symbol(out, name);
    EXPECT_EQ(out, text);
  }
}

TEST(Value, Names) {
  EXPECT_EQ(Value::result(12).to_string(), "%12");
  EXPECT_EQ(Value::argument(0).to_string(), "%arg0");
  EXPECT_EQ((Value{3, Value::Kind::kTemporary}).to_string(), "%t3");
  EXPECT_EQ((Value{4, Value::Kind::kBlockArgument}).to_string(), "%b4");
}

}  // namespace
}  // namespace meshard::stablehlo
