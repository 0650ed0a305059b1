#include "meshard/sharding/check_even.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(CheckEven, OnlyMeshesThatRefuseUnevenSizes) {
  Mesh mesh({{"x", 4}, {"y", 2}}), strict = mesh.with_uneven(Uneven::kError);
  IntVector uneven{8, 3};
  check_even(Sharding(mesh, P("x", "y")), uneven, {});
  check_even(Sharding(strict, P("x", none)), uneven, {});
  EXPECT_EQ(refused_dimension(Sharding(strict, P("x", "y")), uneven), 1u);
  EXPECT_TRUE(throws_error(
      [&] { check_even(Sharding(strict, P("x", "y")), uneven, SourceLocation::current()); },
      ErrorCode::kInvalidArgument,
      {"check_even_test.cc", "dimension 1 of shape (8,3), 3", "2 tiles", "uneven=error"}));
}

// The root's rule applies, whichever derived mesh the sharding is over.
TEST(CheckEven, OfDerivedMeshes) {
  Mesh strict = Mesh({{"x", 4}, {"y", 2}}).with_uneven(Uneven::kError);
  IntVector six{6};
  for (const Mesh& mesh : {strict["x"], strict.permute({"y", "x"}), *strict.submesh("x", 0)})
    EXPECT_EQ(refused_dimension(Sharding(mesh, P("x")), six), 0u) << mesh.to_string();
}

// 2 x 9 over 3 x 6: axes that do not match the root's axes get their own mesh.
TEST(CheckEven, OfMeshesWhoseAxesCutAcrossTheRoot) {
  Mesh strict = Mesh({{"a", 3}, {"b", 6}}).with_uneven(Uneven::kError).with_device_type("tpu");
  Sharding sharding(strict.reshape({{"c", 2}, {"d", 9}}), P("c"));
  ASSERT_FALSE(sharding.mesh().same_root(strict));
  EXPECT_EQ(refused_dimension(sharding, IntVector{3}), 0u);
  EXPECT_EQ(sharding.mesh().device_type(), "tpu");
}

}  // namespace
}  // namespace meshard
