#include "meshard/mesh/global_mesh.h"

#include <thread>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

std::optional<Mesh> seen_by_another_thread() {
  std::optional<Mesh> seen;
  std::thread([&] { seen = global_mesh(); }).join();
  return seen;
}

TEST(GlobalMesh, SetForAllThreads) {
  EXPECT_FALSE(global_mesh());
  EXPECT_TRUE(throws_error([] { require_global_mesh(); }, ErrorCode::kFailedPrecondition,
                           {"no global mesh is set", "MeshScope", "global_mesh_test.cc"}));
  Mesh mesh({{"data", 8}});
  set_global_mesh(mesh);
  EXPECT_TRUE(require_global_mesh().is_same_object(mesh));
  EXPECT_EQ(seen_by_another_thread(), mesh);
  set_global_mesh(std::nullopt);
  EXPECT_FALSE(seen_by_another_thread());
}

TEST(GlobalMesh, ScopesAreOfOneThreadAndNest) {
  Mesh process({{"p", 8}}), outer({{"a", 4}}), inner({{"b", 2}});
  set_global_mesh(process);
  {
    MeshScope first(outer);
    EXPECT_EQ(global_mesh(), outer);
    {
      MeshScope second(inner);
      EXPECT_EQ(global_mesh(), inner);
      EXPECT_EQ(seen_by_another_thread(), process);
    }
    EXPECT_EQ(global_mesh(), outer);
    set_global_mesh(inner);  // hidden by the scope
    EXPECT_EQ(global_mesh(), outer);
    EXPECT_EQ(seen_by_another_thread(), inner);
  }
  EXPECT_EQ(global_mesh(), inner);
  set_global_mesh(std::nullopt);
}

}  // namespace
}  // namespace meshard
