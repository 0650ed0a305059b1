#include "meshard/graph/leaf.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(FromHost, MovedDataIsPrivateAndSharedDataIsShared) {
  HostArray array = HostArray::from_vector<float>({1, 2, 3, 4}, {2, 2});
  const std::byte* bytes = array.bytes();
  Tensor shared = from_host(array);
  EXPECT_EQ(array.ownership(), Ownership::kShared);
  EXPECT_EQ(shared.to_host().bytes(), bytes) << "nothing is copied";
  shared = Tensor();
  EXPECT_EQ(array.ownership(), Ownership::kPrivate);
  Tensor taken = from_host(std::move(array));
  EXPECT_EQ(taken.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(taken.placement(), "host");
}

TEST(FromHost, KeepsLineTypeAndCopies) {
  std::vector<float> values{1, 2};
  Tensor x = from_host(values, {2});
  EXPECT_EQ(x.where().line, static_cast<unsigned>(__LINE__ - 1));
  values[0] = 9;
  EXPECT_EQ(x.to_vector<float>()[0], 1) << "a span is copied";
  EXPECT_EQ(x.type(), (TensorType{DType::f32, Shape{2}}));
  EXPECT_THROW(from_host(values, {3}), Error);
}

TEST(Parameter, KnowsItsSharding) {
  internal::TraceScope scope;
  Sharding sharding(Mesh({{"x", 2}}), P("x"));
  Tensor with = make_parameter({DType::f32, Shape{8}}, sharding, {});
  Tensor without = make_parameter({DType::f32, Shape{8}}, std::nullopt, {});
  ASSERT_TRUE(with.sharding().has_value());
  EXPECT_EQ(*with.sharding(), sharding);
  EXPECT_FALSE(without.sharding().has_value());
  EXPECT_EQ(with.placement(), "traced");
  EXPECT_EQ(with.to_string(), "f32[8] (traced)");
}

TEST(Leaf, AnUnplacedValueKeepsItsBytes) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor cleared = make_unplaced(x.value(), {"user.cc", "f", 3});
  EXPECT_TRUE(cleared.value()->is_unplaced());
  EXPECT_FALSE(x.value()->is_unplaced());
  EXPECT_EQ(cleared.value().storage(), x.value().storage());
  EXPECT_EQ(cleared.type(), x.type());
  EXPECT_EQ(cleared.where().line, 3u);
}

TEST(Leaf, AWrongNumberOfValuesIsAnErrorAtTheCall) {
  SourceLocation where{"user.cc", "f", 9};
  EXPECT_TRUE(throws_error(
      [&] {
        (void)from_host(std::vector<float>{1, 2, 3}, {2, 2}, where);
      },
      ErrorCode::kInvalidArgument, {"user.cc:9", "[from_host] 3 values", "[2, 2]", "has 4"}));
}

}  // namespace
}  // namespace meshard
