#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/mesh_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

std::string whole_text(const Mesh& mesh) { return mesh.to_string(MeshText::kWithRoot); }

TEST(MeshText, KeepsTheRootOfASubmesh) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  Mesh half = *mesh.submesh("model", 5);
  EXPECT_EQ(half.to_string(), "mesh<model=4; devices=[4,5,6,7]>");
  EXPECT_EQ(whole_text(half), "mesh<model=4:1 from 4 of mesh<data=2, model=4>>");
  Mesh read = Mesh::parse(whole_text(half)).value();
  EXPECT_EQ(read, half);
  EXPECT_EQ(read.root(), mesh);
  EXPECT_EQ(read.group({"model"}, 6)->to_vector(), half.group({"model"}, 6)->to_vector());
}

TEST(MeshText, KeepsFlattenedNames) {
  Mesh mesh({{"dp", 2}, {"cp", 2}, {"tp", 2}});
  Mesh apart = mesh.slice({"dp", "tp"}).flatten();
  mesh.slice({"dp", "cp"}).flatten("dp_cp");
  EXPECT_EQ(mesh.to_string(), "mesh<dp=2, cp=2, tp=2>");
  EXPECT_EQ(whole_text(mesh), "mesh<dp=2, cp=2, tp=2; flattened dp_tp=(2,2):(4,1), dp_cp=4:2>");
  Mesh read = Mesh::parse(whole_text(mesh)).value();
  EXPECT_EQ(read, mesh);
  EXPECT_EQ(read.flattened(), mesh.flattened());
  EXPECT_EQ(read["dp_cp"], mesh["dp_cp"]);
  Mesh read_apart = Mesh::parse(whole_text(apart)).value();
  EXPECT_EQ(read_apart, apart);
  EXPECT_EQ(read_apart.root()["dp_cp"], mesh["dp_cp"]);
}

TEST(MeshText, KeepsExplicitFlattenedNames) {
  Mesh mesh = Mesh({{"x", 2}, {"y", 2}}).with_axis_kind({"x", "y"}, AxisKind::kExplicit);
  mesh.flatten("xy");
  EXPECT_EQ(whole_text(mesh), "mesh<x=2 explicit, y=2 explicit; flattened xy=4:1 explicit>");
  EXPECT_EQ(Mesh::parse(whole_text(mesh)).value()["xy"].axes()[0].kind, AxisKind::kExplicit);
}

// Slices, permutations and flattened axes of submeshes, whose strides refer to the submesh.
TEST(MeshText, OfWhatWasTakenFromASubmesh) {
  Mesh mesh({{"a", 2}, {"b", 3}, {"c", 4}},
            {23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  Mesh sub = *mesh.submesh({"c", "a"}, 9);
  for (const Mesh& each : {sub, sub["a"], sub.permute({"a", "c"}), sub.flatten("ca"),
                           sub.unflatten("c", {{"c0", 2}, {"c1", 2}})["c1"],
                           mesh.submesh({"b"}, 0)->as_root(), *sub.submesh("c", 9)}) {
    SCOPED_TRACE(whole_text(each));
    Mesh read = Mesh::parse(whole_text(each)).value();
    EXPECT_EQ(read, each);
    EXPECT_EQ(read.hash(), each.hash());
    EXPECT_EQ(read.rows(), each.rows());
    EXPECT_EQ(read.root(), each.root());
    EXPECT_EQ(read.device_ids().to_vector(), each.device_ids().to_vector());
    EXPECT_EQ(whole_text(read), whole_text(each));
  }
}

// An axis of 3 over the positions of a 2 x 3 submesh: no layout over the positions describes it.
TEST(MeshText, OfAxesThatCutAcrossThoseOfTheSubmesh) {
  Mesh mesh({{"z", 2}, {"p", 2}, {"q", 3}});
  Mesh sub = *mesh.submesh({"q", "p"}, 7);
  Mesh cut = sub.permute({"p", "q"}).flatten("pq").unflatten("pq", {{"three", 3}, {"two", 2}});
  Mesh three = cut["three"];
  ASSERT_EQ(three.rows(), 2);
  EXPECT_EQ(
      whole_text(three),
      "mesh<three=3:2 in mesh<q=3:1, p=2:3 from 6 of mesh<z=2, p=2, q=3; flattened pq=6:1>>>");
  for (const std::string& text : {whole_text(three), three.to_string()}) {
    Mesh read = Mesh::parse(text).value();
    EXPECT_EQ(read, three) << text;
    EXPECT_EQ(read.ranks(0), RankMap::listed({6, 8, 10}));
  }
}

TEST(MeshText, OfAnySubmeshReadsBack) {
  TestRandom random;
  for (int i = 0; i < 300; ++i) {
    Mesh mesh = random_mesh(random);
    if (mesh.rank() < 2) continue;
    std::string first = mesh.axes()[0].name, last = mesh.axes().back().name;
    std::int64_t device = mesh.device_id(random.between(0, mesh.size() - 1));
    Mesh sub = *mesh.submesh({last, first}, device);
    for (const Mesh& each : {sub, sub[first], sub.permute({first, last}), mesh[last]}) {
      Mesh read = Mesh::parse(whole_text(each)).value();
      EXPECT_EQ(read, each) << whole_text(each);
      EXPECT_EQ(read.root(), each.root()) << whole_text(each);
    }
  }
}

TEST(MeshText, DeviceTypeAndUneven) {
  Mesh any({{"data", 2}, {"model", 4}});
  EXPECT_EQ(any.device_type(), "");
  EXPECT_EQ(any.uneven(), Uneven::kAllow);
  Mesh cuda = any.with_device_type("cuda").with_uneven(Uneven::kError);
  EXPECT_EQ(cuda.to_string(), "mesh<data=2, model=4; device_type=cuda; uneven=error>");
  EXPECT_NE(cuda, any);
  EXPECT_NE(any.with_device_type("cuda"), any.with_device_type("tpu"));
  EXPECT_EQ(cuda.with_device_type("").with_uneven(Uneven::kAllow), any);
  for (const Mesh& mesh :
       {cuda, cuda["model"], *cuda.submesh("model", 5), cuda.flatten("all"),
        cuda.permute({"model", "data"}), cuda.as_root(),
        cuda.with_axis_kind({"data"}, AxisKind::kExplicit),
        Mesh(std::vector<MeshAxis>{}, {3}).with_device_type("cuda").with_uneven(Uneven::kError)}) {
    EXPECT_EQ(mesh.device_type(), "cuda") << mesh.to_string();
    EXPECT_EQ(mesh.uneven(), Uneven::kError) << mesh.to_string();
    for (MeshText form : {MeshText::kValue, MeshText::kWithRoot}) {
      Mesh read = Mesh::parse(mesh.to_string(form)).value();
      EXPECT_EQ(read, mesh) << mesh.to_string(form);
      EXPECT_EQ(read.hash(), mesh.hash());
      EXPECT_EQ(read.device_type(), "cuda");
    }
  }
  EXPECT_EQ(cuda.submesh("model", 5)->to_string(),
            "mesh<model=4; devices=[4,5,6,7]; device_type=cuda; uneven=error>");
  EXPECT_TRUE(throws_error([&] { any.with_device_type("a b"); }, ErrorCode::kInvalidArgument,
                           {"mesh_text_test.cc", "\"a b\""}));
  EXPECT_TRUE(throws_error([&] { any["data"].with_device_type("tpu"); },
                           ErrorCode::kInvalidArgument, {"4 rows"}));
}

TEST(MeshText, RefusesWhatIsNoMesh) {
  for (const char* text :
       {"mesh<x=4:1 from 2 of mesh<y=8>>",
        "mesh<x=4:1 from 8 of mesh<y=8>>",
        "mesh<x=4:1 from -4 of mesh<y=8>>",
        "mesh<x=4:1, y=4:1 from 4 of mesh<z=8>>",
        "mesh<a=1, a=1 from 3 of mesh<y=8>>",
        "mesh<x=3:1 from 3 of mesh<y=8>>",
        "mesh<x=2:1 from 2 of mesh<x=4:1 of mesh<y=8>>>",
        "mesh<x=2; device_type=>",
        "mesh<x=2; uneven=yes>",
        "mesh<x=2; color=red>",
        "mesh<x=2; device_type=a; device_type=b>",
        "mesh<x=4; flattened x=4:1>",
        "mesh<x=4; flattened y=3:1>",
        "mesh<x=4; flattened y=4>",
        "mesh<x=4; flattened>",
        "mesh<x=2:4611686018427387904 of mesh<y=8>>",
        "mesh<x=4; flattened y=4:1, y=2:1>",
        "mesh<x=2:4 in mesh<y=4:1 from 4 of mesh<z=8>>>",
        "mesh<x=4:1 in mesh<y=21>>",
        "mesh<c=2:1 of mesh<c=2:6, a=3:1 from 3 of mesh<a=2, b=12>>>",
        "mesh<c=2:1, a=1:2 of mesh<c=2:6, a=3:1 from 3 of mesh<a=2, b=3, c=4>>>"})
    EXPECT_FALSE(Mesh::parse(text).ok()) << text;
}

}  // namespace
}  // namespace meshard
