#include "meshard/mesh/mesh.h"

#include "meshard/mesh/axis_set.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

TEST(Mesh, RowMajorOverTheFirstDevices) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_EQ(mesh.rank(), 2u);
  EXPECT_EQ(mesh.axis_index("model"), 1u);
  EXPECT_EQ(mesh.axis_size("model"), 4);
  EXPECT_EQ(mesh.axis_size(AxisRef("model", 2, 2)), 2);
  EXPECT_EQ(mesh.device_ids().to_vector(), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(*mesh.coordinate(6), (IntVector{1, 2}));
  EXPECT_FALSE(mesh.coordinate(8));
  EXPECT_FALSE(mesh.position(-1));
}

TEST(Mesh, AnyDevicesInAnyOrder) {
  Mesh mesh({{"data", 2}, {"model", 2}}, {9, 3, 4, 12});
  EXPECT_EQ(mesh.device_id(2), 4);
  EXPECT_EQ(mesh.position(12), 3);
  EXPECT_EQ(*mesh.coordinate(4), (IntVector{1, 0}));
  EXPECT_FALSE(mesh.position(0));
  EXPECT_TRUE(mesh.same_devices(Mesh({{"x", 4}}, {3, 4, 9, 12})));
  EXPECT_FALSE(mesh.same_devices(Mesh({{"x", 4}})));
}

TEST(Mesh, WithoutAxesIsOneDevice) {
  EXPECT_EQ(Mesh().size(), 1);
  EXPECT_EQ(Mesh().to_string(), "mesh<>");
  EXPECT_EQ(Mesh(), Mesh(std::vector<MeshAxis>{}));
  EXPECT_EQ(Mesh(std::vector<MeshAxis>{}, {3}).to_string(), "mesh<devices=[3]>");
}

TEST(Mesh, ErrorsNameWhatIsWrong) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 2}, {"x", 2}});
      },
      invalid, {"mesh_test.cc", "\"x\"", "twice", "axes 0 and 1"}));
  EXPECT_TRUE(throws_error([] { Mesh({{"", 2}}); }, invalid, {"axis 0", "empty"}));
  EXPECT_TRUE(throws_error([] { Mesh({{"2x", 2}}); }, invalid, {"\"2x\"", "identifier"}));
  EXPECT_TRUE(throws_error([] { Mesh({{"a-b", 2}}); }, invalid, {"\"a-b\"", "identifier"}));
  EXPECT_TRUE(throws_error([] { Mesh({{"x", 0}}); }, invalid, {"\"x\"", "size 0"}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 1ll << 40}, {"y", 1ll << 40}});
      },
      invalid, {"64 bits", "\"y\""}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 2}, {"y", 2}}, {0, 1, 2});
      },
      invalid, {"3 device ids", "4 positions"}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 2}}, {1, 1});
      },
      invalid, {"mesh_test.cc", "device 1", "twice"}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"data", 2}, {"model", 4}}).axis_size("dat");
      },
      ErrorCode::kNotFound, {"\"dat\"", "data, model"}));
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 6}}).axis_size(AxisRef("x", 2, 2));
      },
      invalid, {"\"x\":(2)2", "6"}));
}

TEST(Mesh, EqualityIsByValue) {
  Mesh a({{"x", 2}, {"y", 2}}), b({{"x", 2}, {"y", 2}}, {0, 1, 2, 3}), copy = a;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_TRUE(a.is_same_object(copy));
  EXPECT_FALSE(a.is_same_object(b));
  EXPECT_NE(a, Mesh({{"x", 2}, {"z", 2}}));
  EXPECT_NE(a, Mesh({{"x", 4}}));
  EXPECT_NE(a, Mesh({{"x", 2}, {"y", 2}}, {0, 1, 3, 2}));
}

TEST(Mesh, ParsesWhatItPrints) {
  for (const Mesh& mesh :
       {Mesh(), Mesh({{"data", 2}, {"model", 4}}), Mesh({{"x", 2}, {"y", 2}}, {4, 5, 6, 7}),
        Mesh({{"x", 3}}, {7, 0, 2}), Mesh(std::vector<MeshAxis>{}, {5}),
        Mesh({{"x", 512}, {"y", 512}}, RankMap::affine(8, 2, 512 * 512))})
    EXPECT_EQ(Mesh::parse(mesh.to_string()).value(), mesh) << mesh.to_string();
  EXPECT_EQ(Mesh({{"x", 2}, {"y", 2}}, {4, 5, 6, 7}).to_string(),
            "mesh<x=2, y=2; devices=[4,5,6,7]>");
  for (const char* text : {"mesh<", "mesh<x>", "mesh<x=2,>", "mesh<x=2; devices=[1]>",
                           "mesh<x=2, x=2>", "mesh<x=2> y"})
    EXPECT_FALSE(Mesh::parse(text).ok()) << text;
}

TEST(Mesh, NothingGrowsWithTheNumberOfDevices) {
  Mesh huge({{"a", 1 << 20}, {"b", 1 << 20}, {"c", 1 << 20}});  // too large to list
  EXPECT_EQ(huge.size(), std::int64_t{1} << 60);
  EXPECT_EQ(*huge.coordinate((std::int64_t{3} << 40) + 5), (IntVector{3, 0, 5}));
  EXPECT_EQ(huge.device_ids()[12345], 12345);
  EXPECT_EQ(Mesh::parse(huge.to_string()).value(), huge);
}

TEST(Mesh, DeviceIdsInBraces) {
  EXPECT_EQ(Mesh({{"x", 1}}, {0}).device_id(0), 0);
  EXPECT_EQ(Mesh({{"x", 1}}, {3}).device_id(0), 3);
  EXPECT_EQ(Mesh({{"x", 2}}, {1, 0}).device_id(0), 1);
  EXPECT_TRUE(throws_error(
      [] {
        Mesh({{"x", 2}}, {0, 0});
      },
      ErrorCode::kInvalidArgument, {"mesh_test.cc:"}));
}

TEST(Mesh, PositionsHaveNames) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  EXPECT_EQ(mesh.named(AxisRef(1)), AxisRef("y"));
  EXPECT_EQ(mesh.named(AxisRef("x", 1, 2)), AxisRef("x", 1, 2));
  EXPECT_EQ(mesh.axis_size(1), 4);
  EXPECT_EQ(AxisSet(mesh, {0}).of(mesh), AxisList{"x"});
}

}  // namespace
}  // namespace meshard
