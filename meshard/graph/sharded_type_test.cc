#include <gtest/gtest.h>

#include <vector>

#include "meshard/graph/storage.h"

namespace meshard {
namespace {

TEST(ShardedType, CopiesAreKnownWithoutAComparison) {
  TensorType type{DType::f32, {8, 4}};
  Sharding rows(Mesh({{"x", 2}}), P("x"), 2);
  ShardedType a(type, rows), equal(type, rows);
  std::vector<ShardedType> copies{a};
  EXPECT_EQ(a.type(), type);
  EXPECT_EQ(*a.sharding(), rows);
  EXPECT_TRUE(a.is_copy_of(copies[0]));
  EXPECT_FALSE(a.is_copy_of(equal));
  EXPECT_EQ(a, copies[0]);
  EXPECT_EQ(a, equal);
}

TEST(ShardedType, DifferByTypeOrSharding) {
  TensorType type{DType::f32, {8, 4}};
  Mesh mesh({{"x", 2}});
  ShardedType a(type, Sharding(mesh, P("x"), 2));
  EXPECT_NE(a, ShardedType({DType::f32, {8, 6}}, Sharding(mesh, P("x"), 2)));
  EXPECT_NE(a, ShardedType(type, Sharding(mesh, P(none, "x"), 2)));
  EXPECT_NE(a, ShardedType(type, std::nullopt));
  EXPECT_EQ(ShardedType(type, std::nullopt).sharding(), nullptr);
}

}  // namespace
}  // namespace meshard
