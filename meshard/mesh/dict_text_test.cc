#include "meshard/mesh/dict_text.h"

#include <gtest/gtest.h>

#include "meshard/mesh/mesh_testutil.h"

namespace meshard {
namespace {

// Texts from torch_xla 2.9.
TEST(MeshDictText, AsTheReferencePrints) {
  EXPECT_EQ(mesh_dict_text(Mesh({{"axis_0", 1}})),
            "{'device_ids': [0], 'mesh_shape': (1,), 'axis_names': None}");
  EXPECT_EQ(mesh_dict_text(Mesh({{"ax0", 1}})),
            "{'device_ids': [0], 'mesh_shape': (1,), 'axis_names': ('ax0',)}");
  EXPECT_EQ(mesh_dict_text(Mesh({{"x", 2}, {"y", 1}}, {3, 2})),
            "{'device_ids': [3, 2], 'mesh_shape': (2, 1), 'axis_names': ('x', 'y')}");
}

TEST(MeshDictText, WhatIsPrintedIsRead) {
  TestRandom random;
  for (int round = 0; round < 100; ++round) {
    Mesh mesh = random_mesh(random);
    EXPECT_EQ(parse_mesh_dict(mesh_dict_text(mesh)).value(), mesh) << mesh.to_string();
  }
}

TEST(MeshDictText, OtherSpellings) {
  Mesh mesh({{"x", 2}, {"y", 1}}, {3, 2});
  for (const char* text :
       {R"({"mesh_shape": [2, 1], "axis_names": ["x", "y"], "device_ids": [3, 2]})",
        "{'device_ids':(3,2,),'mesh_shape':(2,1,),'axis_names':('x','y',)}"})
    EXPECT_EQ(parse_mesh_dict(text).value(), mesh) << text;
}

TEST(MeshDictText, Refused) {
  for (const char* text :
       {"", "{}", "{'device_ids': [0]}", "{'ids': [0], 'mesh_shape': (1,)}",
        "{'device_ids': [0, 0], 'mesh_shape': (2,)}",
        "{'device_ids': [0], 'mesh_shape': (1,), 'axis_names': ('x', 'y')}",
        "{'device_ids': [0, 'mesh_shape': (1,)}", "{'device_ids': [0], 'mesh_shape': (1,)} 1"})
    EXPECT_FALSE(parse_mesh_dict(text).ok()) << text;
}

}  // namespace
}  // namespace meshard
