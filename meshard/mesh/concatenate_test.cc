#include "meshard/mesh/concatenate.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(MeshConcatenate, PutsSlicesTogetherInAnyOrder) {
  Mesh mesh({{"dp", 2}, {"cp", 3}, {"tp", 4}});
  EXPECT_EQ(concatenate({mesh["dp"], mesh["cp"], mesh["tp"]}), mesh);
  EXPECT_EQ(concatenate({mesh["tp"], mesh["dp"]}), mesh.slice({"tp", "dp"}));
  Mesh split = mesh.unflatten("tp", {{"a", 2}, {"b", 2}});
  EXPECT_EQ(concatenate({split["b"], mesh["dp"]}).layout(),
            Layout(IntTuple{2, 2}, IntTuple{1, 12}));
}

TEST(MeshConcatenate, EqualRankMapsOfTwoRoots) {
  Mesh one({{"a", 2}, {"b", 2}}, {3, 1, 0, 2}), two({{"x", 2}, {"y", 2}}, {3, 1, 0, 2});
  Mesh both = concatenate({one["a"], two["y"]});
  EXPECT_TRUE(both.root().is_same_object(one));
  EXPECT_EQ(both.rank_map(), one.rank_map());
}

TEST(MeshConcatenate, Errors) {
  Mesh mesh({{"dp", 2}, {"tp", 4}}), other({{"dp", 2}, {"tp", 4}}, {7, 6, 5, 4, 3, 2, 1, 0});
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [&] {
        concatenate({mesh["dp"], other["tp"]});
      },
      invalid, {"concatenate_test.cc", "different devices", "[7,6,5,4,3,2,1,0]"}));
  EXPECT_TRUE(throws_error(
      [&] {
        concatenate({mesh["dp"], mesh.rename({{"dp", "x"}})});
      },
      invalid, {"overlap"}));
  EXPECT_TRUE(throws_error(
      [&] {
        concatenate({mesh["dp"], mesh["tp"].rename({{"tp", "dp"}})});
      },
      invalid, {"\"dp\""}));
  EXPECT_TRUE(
      throws_error([&] { concatenate(std::span<const Mesh>()); }, invalid, {"at least one mesh"}));
  std::optional<Mesh> half = mesh.submesh("tp", 0);
  EXPECT_TRUE(throws_error(
      [&] {
        concatenate({*half, mesh["dp"]});
      },
      invalid, {"different devices"}));
}

}  // namespace
}  // namespace meshard
