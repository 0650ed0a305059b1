#include "meshard/array/dtype/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

constexpr DType all(int i) { return static_cast<DType>(i); }

// The tables of the array API standard 2023.12, "Type Promotion Rules", with one row per left
// operand. Where the standard defines no result, JAX's is used: u64 with a signed type is f32; f16
// with bf16 is f32.
const char kIntegers[] =
    "     i8  i16 i32 i64 u8  u16 u32 u64\n"
    "i8   i8  i16 i32 i64 i16 i32 i64 f32\n"
    "i16  i16 i16 i32 i64 i16 i32 i64 f32\n"
    "i32  i32 i32 i32 i64 i32 i32 i64 f32\n"
    "i64  i64 i64 i64 i64 i64 i64 i64 f32\n"
    "u8   i16 i16 i32 i64 u8  u16 u32 u64\n"
    "u16  i32 i32 i32 i64 u16 u16 u32 u64\n"
    "u32  i64 i64 i64 i64 u32 u32 u32 u64\n"
    "u64  f32 f32 f32 f32 u64 u64 u64 u64\n";
const char kFloats[] =
    "     f16 bf16 f32 f64\n"
    "f16  f16 f32  f32 f64\n"
    "bf16 f32 bf16 f32 f64\n"
    "f32  f32 f32  f32 f64\n"
    "f64  f64 f64  f64 f64\n";

void check_table(const std::string& text) {
  std::istringstream lines(text);
  std::string line, word;
  std::getline(lines, line);
  std::vector<DType> columns;
  for (std::istringstream words(line); words >> word;) columns.push_back(parse_dtype(word).value());
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    words >> word;
    DType left = parse_dtype(word).value();
    for (DType right : columns) {
      words >> word;
      EXPECT_EQ(to_string(promote(left, right)), word)
          << to_string(left) << " " << to_string(right);
      EXPECT_EQ(to_string(promote(right, left)), word)
          << to_string(right) << " " << to_string(left);
    }
  }
}

TEST(Promote, IntegerTable) { check_table(kIntegers); }
TEST(Promote, FloatTable) { check_table(kFloats); }

// The array API standard's table of complex and floating-point types, and JAX's rules for integers.
const char kComplex[] =
    "     c64  c128 f32  f64  bf16 i64 u8\n"
    "c64  c64  c128 c64  c128 c64  c64 c64\n"
    "c128 c128 c128 c128 c128 c128 c128 c128\n";
TEST(Promote, ComplexTable) {
  check_table(kComplex);
  EXPECT_EQ(real_dtype(DType::c128), DType::f64);
  EXPECT_EQ(real_dtype(DType::bf16), DType::bf16);
  EXPECT_EQ(complex_dtype(DType::f64), DType::c128);
  EXPECT_EQ(complex_dtype(DType::i8), DType::c64);
}

TEST(Promote, BoolGivesWayToAll) {
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(promote(DType::bool_, all(i)), all(i));
    EXPECT_EQ(promote(all(i), DType::bool_), all(i));
    EXPECT_EQ(promote(all(i), all(i)), all(i));
  }
}

TEST(Promote, IntegersGiveWayToFloats) {
  for (int i = 0; i < kDTypeCount; ++i)
    for (int f = 0; f < kDTypeCount; ++f)
      if (is_integer(all(i)) && is_floating(all(f))) {
        EXPECT_EQ(promote(all(i), all(f)), all(f));
        EXPECT_EQ(promote(all(f), all(i)), all(f));
      }
}

TEST(Promote, Float8MeetsNoOtherFloat) {
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b)
      if (a != b && is_floating(all(a)) && is_float8(all(b))) {
        std::string left(to_string(all(a))), right(to_string(all(b)));
        EXPECT_TRUE(throws_error([&] { promote(all(a), all(b)); }, ErrorCode::kInvalidArgument,
                                 {"[promote]", left, right}));
        EXPECT_TRUE(throws_error([&] { promote(all(b), all(a)); }, ErrorCode::kInvalidArgument,
                                 {"[promote]", left, right}));
      }
}

TEST(PromoteScalar, Table) {
  using enum ScalarKind;
  for (int i = 0; i < kDTypeCount; ++i) {
    DType d = all(i);
    EXPECT_EQ(promote_scalar(d, kBool), d);
    EXPECT_EQ(promote_scalar(d, kInteger), d == DType::bool_ ? DType::i32 : d);
    EXPECT_EQ(promote_scalar(d, kFloat), is_inexact(d) ? d : DType::f32);
  }
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(parse_dtype(to_string(all(i))).value(), all(i));
    EXPECT_EQ(parse_stablehlo_dtype(stablehlo_name(all(i))).value(), all(i));
  }
  EXPECT_EQ(to_string(DType::bool_), "bool");
  EXPECT_EQ(to_string(DType::f8e8m0fnu), "f8e8m0fnu");
  EXPECT_EQ(stablehlo_name(DType::bool_), "i1");
  EXPECT_EQ(stablehlo_name(DType::u8), "ui8");
  EXPECT_EQ(stablehlo_name(DType::f8e4m3b11fnuz), "f8E4M3B11FNUZ");
  EXPECT_TRUE(throws_error([] { (void)parse_dtype("float32").value(); },
                           ErrorCode::kInvalidArgument, {"float32", "bf16"}));
}

TEST(DType, CppTypesHaveTheirSize) {
  static_assert(dtype_of<float>() == DType::f32);
  static_assert(dtype_of<bool>() == DType::bool_);
  static_assert(dtype_of<std::int64_t>() == DType::i64);
  static_assert(dtype_of<long long>() == DType::i64);
  static_assert(dtype_of<std::uint8_t>() == DType::u8);
  static_assert(dtype_of<BFloat16>() == DType::bf16);
  static_assert(!Element<std::string> && !Element<long double>);
  for (int i = 0; i < kDTypeCount; ++i)
    visit_dtype(all(i), [&]<class T>() {
      EXPECT_EQ(dtype_of<T>(), all(i));
      EXPECT_EQ(sizeof(T), size_in_bytes(all(i)));
    });
}

TEST(DType, KindsPartitionTheTypes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DType d = all(i);
    EXPECT_EQ(is_integer(d) + is_floating(d) + is_complex(d) + (d == DType::bool_), 1);
    EXPECT_EQ(is_inexact(d), is_floating(d) || is_complex(d));
    EXPECT_EQ(is_integer(d), is_signed_integer(d) || is_unsigned_integer(d));
  }
  EXPECT_TRUE(is_signed(DType::i8) && is_signed(DType::f16) && is_signed(DType::f8e4m3fnuz));
  EXPECT_FALSE(is_signed(DType::u64) || is_signed(DType::bool_) || is_signed(DType::f8e8m0fnu));
}

TEST(Limits, OfIntegersAreTheCppOnes) {
  for (int i = 1; is_integer(all(i)); ++i)
    visit_dtype(all(i), [&]<class T>() {
      if constexpr (std::is_integral_v<T>) {
        EXPECT_EQ(integer_limits(all(i)).min,
                  static_cast<std::int64_t>(std::numeric_limits<T>::min()));
        EXPECT_EQ(integer_limits(all(i)).max,
                  static_cast<std::uint64_t>(std::numeric_limits<T>::max()));
      }
    });
  EXPECT_EQ(integer_limits(DType::bool_).max, 1u);
}

// numpy.finfo and ml_dtypes.finfo.
TEST(Limits, OfFloats) {
  struct Row {
    DType dtype;
    double max, epsilon, smallest_normal;
    bool infinity;
  };
  const Row rows[] = {
      {DType::f16, 65504, std::ldexp(1, -10), std::ldexp(1, -14), true},
      {DType::bf16, 0x1.FEp127, std::ldexp(1, -7), std::ldexp(1, -126), true},
      {DType::f32, 0x1.FFFFFEp127, std::ldexp(1, -23), std::ldexp(1, -126), true},
      {DType::f64, 0x1.FFFFFFFFFFFFFp1023, std::ldexp(1, -52), std::ldexp(1, -1022), true},
      {DType::f8e4m3fn, 448, 0.125, std::ldexp(1, -6), false},
      {DType::f8e5m2, 57344, 0.25, std::ldexp(1, -14), true},
      {DType::f8e4m3, 240, 0.125, std::ldexp(1, -6), true},
      {DType::f8e3m4, 15.5, 0.0625, 0.25, true},
      {DType::f8e4m3fnuz, 240, 0.125, std::ldexp(1, -7), false},
      {DType::f8e5m2fnuz, 57344, 0.25, std::ldexp(1, -15), false},
      {DType::f8e4m3b11fnuz, 30, 0.125, std::ldexp(1, -10), false},
  };
  for (const Row& row : rows) {
    FloatLimits limits = float_limits(row.dtype);
    EXPECT_EQ(limits.max, row.max) << to_string(row.dtype);
    EXPECT_EQ(limits.lowest, -row.max);
    EXPECT_EQ(limits.epsilon, row.epsilon);
    EXPECT_EQ(limits.smallest_normal, row.smallest_normal);
    EXPECT_EQ(limits.has_infinity, row.infinity);
  }
  EXPECT_EQ(float_limits(DType::f8e8m0fnu).max, std::ldexp(1, 127));
  EXPECT_EQ(float_limits(DType::f8e8m0fnu).lowest, std::ldexp(1, -127));
}

}  // namespace
}  // namespace meshard
