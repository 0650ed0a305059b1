#include "meshard/mesh/mesh.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;

// Eight devices, like torch.arange(8).reshape(2, 2, 2).
Mesh dp_cp_tp() { return Mesh({{"dp", 2}, {"cp", 2}, {"tp", 2}}); }

TEST(MeshSlice, KeepsAllRows) {
  Mesh mesh = dp_cp_tp();
  Mesh tp = mesh["tp"];
  EXPECT_EQ(tp.size(), 2);
  EXPECT_EQ(tp.rows(), 4);
  EXPECT_EQ(tp.layout(), Layout(IntTuple{2}, IntTuple{1}));
  EXPECT_EQ(tp.rank_map(), RankMap::listed({0, 1}));
  EXPECT_EQ(tp.ranks(2), RankMap::listed({4, 5}));
  EXPECT_EQ(tp.row(5), 2);
  EXPECT_EQ(*tp.coordinate(5), (IntVector{1}));
  EXPECT_EQ(tp.device_id({0}, 5), 4);
  EXPECT_FALSE(tp.device_id({0}, 8));
  EXPECT_EQ(tp.device_ids().to_vector(), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(mesh["cp"].device_ids().to_vector(), (Ids{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_TRUE(tp.root().is_same_object(mesh));
}

TEST(MeshSlice, NonAdjacentAxesInAnyOrder) {
  Mesh mesh = dp_cp_tp();
  EXPECT_EQ(mesh.slice({"dp", "tp"}).ranks(1), RankMap::listed({2, 3, 6, 7}));
  EXPECT_EQ(mesh.slice({"tp", "dp"}).ranks(1), RankMap::listed({2, 6, 3, 7}));
  EXPECT_EQ(*mesh.slice({"tp", "dp"}).coordinate(6), (IntVector{0, 1}));
}

TEST(MeshSlice, AllNamesInOrderAreTheSameObject) {
  Mesh mesh = dp_cp_tp();
  EXPECT_TRUE(mesh.slice({"dp", "cp", "tp"}).is_same_object(mesh));
  EXPECT_FALSE(mesh.slice({"tp", "cp", "dp"}).is_same_object(mesh));
  Mesh none = mesh.slice(AxisNames(std::vector<std::string>{}));
  EXPECT_EQ(none.rank(), 0u);
  EXPECT_EQ(none.rows(), 8);
}

TEST(MeshSlice, FlattenedNamesOfTheRoot) {
  Mesh mesh = dp_cp_tp();
  mesh.slice({"dp", "cp"}).flatten("dp_cp");
  Mesh again = mesh.slice({"tp", "dp_cp"});
  EXPECT_EQ(again.axis_layout(1), Layout(4, 2));
  EXPECT_EQ(again.ranks(0), RankMap::listed({0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_TRUE(throws_error([&] { mesh["tp"]["dp_cp"]; }, ErrorCode::kNotFound, {"\"dp_cp\""}));
  EXPECT_TRUE(throws_error(
      [&] {
        mesh.slice({"dp_cp", "dp"});
      },
      ErrorCode::kInvalidArgument, {"overlap", "dp_cp", "slice_test.cc"}));
}

TEST(MeshSlice, UnitAxesMayBeNamedAgain) {
  Mesh mesh({{"one", 1}, {"tp", 4}});
  EXPECT_EQ(mesh.slice({"one", "tp", "one"}).size(), 4);
  EXPECT_TRUE(throws_error([&] { mesh.slice({"tp", "tp"}); }, ErrorCode::kInvalidArgument, {"tp"}));
}

TEST(MeshSlice, OfIrregularRanks) {
  Mesh mesh({{"dp", 2}, {"tp", 2}}, {10, 20, 30, 47});
  EXPECT_EQ(mesh["dp"].ranks(1), RankMap::listed({20, 47}));
  EXPECT_EQ(mesh["dp"].row(47), 1);
  EXPECT_EQ(mesh["tp"].device_ids().to_vector(), (Ids{10, 20, 30, 47}));
  EXPECT_FALSE(mesh["tp"].coordinate(11));
}

TEST(MeshSlice, ErrorsNameTheMeshAndTheLine) {
  EXPECT_TRUE(throws_error([] { dp_cp_tp().slice("pp"); }, ErrorCode::kNotFound,
                           {"slice_test.cc", "\"pp\"", "dp, cp, tp"}));
  EXPECT_TRUE(throws_error([] { dp_cp_tp()["tp"].device_id(0); }, ErrorCode::kInvalidArgument,
                           {"4 rows", "mesh<tp=2:1 of mesh<dp=2, cp=2, tp=2>>"}));
  EXPECT_TRUE(
      throws_error([] { dp_cp_tp()["tp"].ranks(4); }, ErrorCode::kOutOfRange, {"row index 4"}));
  EXPECT_TRUE(
      throws_error([] { dp_cp_tp()["tp"].as_root(); }, ErrorCode::kInvalidArgument, {"4 rows"}));
}

TEST(MeshSlice, PrintsAndParses) {
  Mesh mesh = dp_cp_tp();
  for (const Mesh& slice : {mesh["tp"], mesh.slice({"dp", "tp"}), mesh.slice({"tp", "dp"}),
                            mesh.slice({"dp", "tp"}).flatten("dt"), mesh.slice(AxisNames({})),
                            mesh.permute({"cp", "tp", "dp"}), mesh.flatten("all"),
                            mesh.unsqueeze("one", 1).permute({"tp", "one", "cp", "dp"}),
                            mesh.submesh({"dp", "tp"}, 3)->permute({"tp", "dp"}),
                            Mesh({{"one", 1}, {"tp", 4}}).slice({"one", "tp", "one"})}) {
    SCOPED_TRACE(slice.to_string());
    EXPECT_EQ(Mesh::parse(slice.to_string()).value(), slice);
  }
  EXPECT_EQ(mesh.slice({"dp", "tp"}).flatten("dt").to_string(),
            "mesh<dt=(2,2):(4,1) of mesh<dp=2, cp=2, tp=2>>");
  EXPECT_EQ(mesh.permute({"tp", "cp", "dp"}).to_string(),
            "mesh<tp=2:1, cp=2:2, dp=2:4 of mesh<dp=2, cp=2, tp=2>>");
  for (const char* text :
       {"mesh<x=4:0 of mesh<y=8>>", "mesh<x=4:4 of mesh<y=8>>", "mesh<x=4:1>",
        "mesh<x=2:1, y=4:1 of mesh<z=8>>", "mesh<x=3:1 of mesh<y=8>>", "mesh<x=2 of mesh<y=8>>"})
    EXPECT_FALSE(Mesh::parse(text).ok()) << text;
}

// The first rows are equal, the others differ.
TEST(MeshSlice, EqualityAndHashSeeAllRows) {
  Mesh pairs({{"rep", 2}, {"shard", 2}}, {0, 2, 4, 6}), cubes({{"rep", 2}, {"a", 2}, {"b", 2}});
  EXPECT_EQ(pairs["rep"].rank_map(), cubes["rep"].rank_map());
  EXPECT_NE(pairs["rep"], cubes["rep"]);
  EXPECT_NE(pairs["rep"].hash(), cubes["rep"].hash());
}

TEST(MeshPermute, NeedsEveryAxisOnce) {
  Mesh mesh = dp_cp_tp();
  EXPECT_EQ(mesh.permute({"tp", "dp", "cp"}).device_ids().to_vector(),
            (Ids{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(mesh.permute({"tp", "dp", "cp"}).permute({"dp", "cp", "tp"}), mesh);
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"tp", "dp"}, {"tp", "dp", "dp"}, {"tp", "dp", "cp", "cp"}})
    EXPECT_TRUE(throws_error([&] { mesh.permute(names); }, ErrorCode::kInvalidArgument, {"once"}));
}

}  // namespace
}  // namespace meshard
