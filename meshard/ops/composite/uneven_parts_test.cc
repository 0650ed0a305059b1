// tests/e2e/manual_test.cc tests the values.
#include "meshard/ops/composite/uneven_parts.h"

#include <gtest/gtest.h>

#include <limits>

#include "meshard/ops/composite/manual.h"
#include "meshard/ops/composite/manual_sharding.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh uneven_mesh() { return Mesh({{"x", 4}, {"y", 2}}); }

TEST(UnevenParts, AreAnErrorWithoutPadding) {
  auto f = manual(uneven_mesh(), P("x", "y"), P("x", "y"), [](const Tensor& t) { return t; });
  EXPECT_TRUE(throws_error(
      [&] {
        f(input({8, 7}));
      },
      ErrorCode::kInvalidArgument,
      {"uneven_parts_test.cc:", "[manual] dimension 1 of f32[8,7]", "is 7",
       "2 devices along {\"y\"} of mesh<x=4, y=2>", "pad"}));
  EXPECT_EQ(f(input({8, 6})).shape(), (Shape{8, 6}));
  EXPECT_TRUE(
      throws_error([] { enable_manual_sharding(input({3}) * 2, uneven_mesh(), P("x")); },
                   ErrorCode::kInvalidArgument,
                   {"uneven_parts_test.cc:", "[enable_manual_sharding] dimension 0", "is 3"}));
  auto inner =
      manual(uneven_mesh(), P("y"), P("y"), [](const Tensor& t) { return t; }, {.axes = {"y"}});
  auto outer = manual(uneven_mesh(), P("x"), P("x"), inner, {.axes = {"x"}});
  EXPECT_TRUE(throws_error([&] { outer(input({12})); }, ErrorCode::kInvalidArgument,
                           {"dimension 0 of f32[3]", "is 3", "2 devices along {\"y\"}"}));
}

TEST(UnevenParts, PaddingFitsTheDtype) {
  const SourceLocation here = SourceLocation::current();
  EXPECT_EQ(PadValue(2).in(DType::bf16, here).item<float>(), 2);
  EXPECT_EQ(PadValue(ReduceKind::kMax).in(DType::i8, here).item<int>(), -128);
  EXPECT_EQ(PadValue(ReduceKind::kMin).in(DType::u64, here).item<std::uint64_t>(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(PadValue(ReduceKind::kMax).in(DType::f32, here).item<float>(),
            -std::numeric_limits<float>::infinity());
  EXPECT_EQ(PadValue(ReduceKind::kMin).in(DType::bool_, here).item<bool>(), true);
  EXPECT_EQ(PadValue(ReduceKind::kProd).in(DType::i32, here).item<int>(), 1);
  auto padded = [](PadValue pad, DType dtype) {
    (void)manual(uneven_mesh(), P("x"), P("x"), [](const Tensor& t) { return t; },
                 {.pad = pad})(input({7}, dtype));
  };
  EXPECT_TRUE(throws_error([&] { padded(-std::numeric_limits<double>::infinity(), DType::i32); },
                           ErrorCode::kInvalidArgument, {"uneven_parts_test.cc:", "inf", "i32"}));
  EXPECT_TRUE(throws_error([&] { padded(ReduceKind::kMax, DType::c64); },
                           ErrorCode::kInvalidArgument, {"max", "c64"}));
}

TEST(UnevenParts, ValidSizeIsOfAnArgument) {
  (void)manual(
      uneven_mesh(), P("x"), P("x"),
      [](const Tensor& t) {
        EXPECT_EQ(varying(valid_size(t, 0)), R"({"x"})");
        EXPECT_EQ(valid_size(t, -1).type(), (TensorType{DType::i32, {}}));
        EXPECT_TRUE(throws_error([&] { valid_size(t + 1, 0); }, ErrorCode::kInvalidArgument,
                                 {"uneven_parts_test.cc:", "[valid_size]", "computed"}));
        EXPECT_TRUE(
            throws_error([&] { valid_size(t, 1); }, ErrorCode::kOutOfRange, {"[valid_size]"}));
        return t;
      },
      {.pad = 1})(input({7}));
  EXPECT_TRUE(throws_error([] { valid_size(input({7}), 0); }, ErrorCode::kInvalidArgument,
                           {"[valid_size]", "full value"}));
}

}  // namespace
}  // namespace meshard
