#include "meshard/graph/tensor.h"

#include <gtest/gtest.h>

#include <sstream>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

static_assert(!std::is_assignable_v<Tensor, Tensor>, "assigning to a temporary does not compile");
static_assert(sizeof(Tensor) == 16);

TEST(Tensor, UndefinedOnesSayWhere) {
  Tensor nothing;
  EXPECT_FALSE(nothing.defined());
  EXPECT_TRUE(throws_error([&] { (void)nothing.shape(); }, ErrorCode::kInvalidArgument,
                           {"tensor_test.cc:", "has no value"}));
}

TEST(Tensor, KnowsTypeAndDimensions) {
  Tensor x = from_host(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(x.dtype(), DType::i32);
  EXPECT_EQ(x.rank(), 2);
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_TRUE(throws_error([&] { (void)x.dim(2); }, ErrorCode::kInvalidArgument, {"2"}) ||
              throws_error([&] { (void)x.dim(2); }, ErrorCode::kOutOfRange, {"2"}));
  std::ostringstream out;
  out << from_host(HostArray::scalar(2.5f));
  EXPECT_EQ(out.str(), HostArray::scalar(2.5f).to_string());
}

TEST(Tensor, ATracedValueCannotBeRead) {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, Shape{2}}, std::nullopt, {});
  Tensor y = test::plus(x, x);
  EXPECT_TRUE(throws_error([&] { y.to_host(); }, ErrorCode::kFailedPrecondition,
                           {"traced value", "tensor_test.cc"}));
}

TEST(Tensor, ReadingWithoutARuntimeSaysSo) {
  Tensor x = from_host(HostArray::scalar(1.0f));
  Tensor y = test::plus(x, x);
  EXPECT_TRUE(throws_error([&] { y.to_host(); }, ErrorCode::kFailedPrecondition,
                           {"include <meshard/meshard.h>"}));
}

TEST(In, TakesTensorsAndNumbers) {
  Tensor x = from_host(HostArray::scalar(1.0f));
  EXPECT_EQ(In(x).tensor, &x);
  EXPECT_EQ(In(3).scalar.kind, ScalarKind::kInteger);
  EXPECT_EQ(In(3u).scalar.integer, 3);
  EXPECT_EQ(In(2.5f).scalar.floating, 2.5);
  EXPECT_EQ(In(true).scalar.kind, ScalarKind::kBool);
}

}  // namespace
}  // namespace meshard
