#include "meshard/graph/abstract_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh kAbstractMesh({{"data", 2}, {"model", 4}});

TEST(AbstractTensor, HasATypeAndASharding) {
  Tensor plain = abstract_tensor({1 << 20, 1 << 20}, DType::bf16);
  EXPECT_EQ(plain.type(), (TensorType{DType::bf16, Shape{1 << 20, 1 << 20}}));
  EXPECT_EQ(plain.sharding(), std::nullopt);
  EXPECT_TRUE(is_abstract(plain));
  EXPECT_EQ(plain.to_string(), "bf16[1048576,1048576] (abstract)");
  EXPECT_EQ(plain.placement(), "nowhere (abstract)");

  Tensor split = abstract_tensor({8, 4}, DType::f32, kAbstractMesh, P("data"));
  EXPECT_EQ(split.sharding(), Sharding(kAbstractMesh, P("data", none)));
  EXPECT_EQ(split.stored_sharding(), split.sharding());
}

TEST(AbstractTensor, OthersAreNot) {
  EXPECT_FALSE(is_abstract(Tensor()));
  EXPECT_FALSE(is_abstract(from_host(std::vector<float>(2), Shape{2})));
}

TEST(AbstractTensor, HasNoValue) {
  Tensor x = abstract_tensor({2}, DType::f32);
  EXPECT_TRUE(throws_error([&] { x.to_host(); }, ErrorCode::kFailedPrecondition,
                           {"f32[2]", "abstract_tensor_test.cc", "no value"}));
  EXPECT_TRUE(throws_error([&] { x.item<float>(); }, ErrorCode::kFailedPrecondition, {"no value"}));
}

TEST(AbstractTensor, RefusesMoreDimensionsThanItHas) {
  EXPECT_TRUE(
      throws_error([] { abstract_tensor({8}, DType::f32, kAbstractMesh, P("data", "model")); },
                   ErrorCode::kInvalidArgument, {"2 dimensions", "f32[8]"}));
}

}  // namespace
}  // namespace meshard
