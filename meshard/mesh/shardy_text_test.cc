#include "meshard/mesh/shardy_text.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(ShardyMeshText, WithoutDeviceIds) {
  EXPECT_EQ(shardy_text(Mesh({{"data", 2}, {"model", 4}})), "<[\"data\"=2, \"model\"=4]>");
  EXPECT_EQ(shardy_text(Mesh({{"x", 2}}, {7, 3})), "<[\"x\"=2]>");  // logical numbering
  EXPECT_EQ(shardy_text(Mesh()), "<[]>");
}

TEST(ShardyMeshText, NumberedByAnotherMesh) {
  Mesh first({{"x", 4}}, {6, 2, 8, 4});
  EXPECT_EQ(shardy_text(first, first), "<[\"x\"=4]>");
  EXPECT_EQ(shardy_text(Mesh({{"a", 2}, {"b", 2}}, {2, 4, 6, 8}), first),
            "<[\"a\"=2, \"b\"=2], device_ids=[1, 3, 0, 2]>");
  EXPECT_TRUE(throws_error(
      [&] {
        shardy_text(Mesh({{"a", 4}}), first);
      },
      ErrorCode::kInvalidArgument, {"mesh<a=4>", "[6,2,8,4]"}));
}

TEST(ShardyMeshText, Parse) {
  EXPECT_EQ(parse_shardy_mesh("<[\"data\"=2, \"model\"=4]>").value(),
            Mesh({{"data", 2}, {"model", 4}}));
  EXPECT_EQ(parse_shardy_mesh("<[\"x\"=2], device_ids=[1, 0]>").value(), Mesh({{"x", 2}}, {1, 0}));
  EXPECT_EQ(parse_shardy_mesh("<[], device_ids=[3]>").value(), Mesh(std::vector<MeshAxis>{}, {3}));
  EXPECT_FALSE(parse_shardy_mesh("<[\"x\"=2], device_ids=[1]>").ok());
  EXPECT_FALSE(parse_shardy_mesh("[\"x\"=2]").ok());
}

}  // namespace
}  // namespace meshard
