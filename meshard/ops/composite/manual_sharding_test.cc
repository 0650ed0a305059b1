#include "meshard/ops/composite/manual_sharding.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& eight() {
  static const Mesh mesh({{"x", 4}, {"y", 2}});
  return mesh;
}

// A recorded value, so that nothing is placed on devices.
Tensor recorded(Shape shape) { return multiply(input(std::move(shape)), 2); }

TEST(ManualSharding, FromFullToShardAndBack) {
  Tensor local = enable_manual_sharding(recorded({8, 7}), eight(), P("x", "y"), 0);
  EXPECT_EQ(local.shape(), (Shape{2, 4}));
  EXPECT_EQ(varying(local), R"({"x", "y"})");
  EXPECT_EQ(local.placement(), R"(manual over {"x", "y"} of mesh<x=4, y=2>)");
  Tensor full = disable_manual_sharding(multiply(local, 3), eight(), P("x", "y"), {8, 7});
  EXPECT_EQ(full.shape(), (Shape{8, 7}));
  EXPECT_EQ(full.sharding(), Sharding(eight(), P("x", "y")));
}

TEST(ManualSharding, AFullValueIsOnlyMarked) {
  Tensor marked = disable_manual_sharding(recorded({8, 8}), eight(), P("x", "y"), {8, 8});
  EXPECT_EQ(marked.sharding(), Sharding(eight(), P("x", "y")));
  EXPECT_TRUE(throws_error(
      [] {
        disable_manual_sharding(recorded({2, 4}), eight(), P("x", "y"), {8, 8});
      },
      ErrorCode::kInvalidArgument,
      {"[disable_manual_sharding]", "f32[2,4]", "[8, 8]", "manual_sharding_test.cc:"}));
}

TEST(ManualSharding, MovesNoData) {
  Tensor marked = sharding_constraint(recorded({8, 8}), Sharding(eight(), P("x", "y")));
  EXPECT_EQ(enable_manual_sharding(marked, eight(), P("x", "y")).shape(), (Shape{2, 4}));
  EXPECT_TRUE(throws_error([&] { enable_manual_sharding(marked, eight(), P("y", "x")); },
                           ErrorCode::kInvalidArgument,
                           {"already sharded differently", R"(P("x", "y"))", R"(P("y", "x"))",
                            "manual_sharding_test.cc:"}));
}

TEST(ManualSharding, IsNotEnabledTwice) {
  Tensor local = enable_manual_sharding(recorded({8}), eight(), P("x"));
  EXPECT_TRUE(throws_error([&] { enable_manual_sharding(local, eight(), P("x")); },
                           ErrorCode::kInvalidArgument, {"cannot enter these manual axes twice"}));
}

TEST(ManualSharding, MeshesThatDeriveFromAnother) {
  EXPECT_TRUE(manual_mesh(eight(), {}).is_same_object(eight()));
  EXPECT_EQ(manual_mesh(eight()["y"], {}), eight());
  Mesh split = eight().unflatten("x", {{"a", 2}, {"b", 2}});
  EXPECT_EQ(manual_mesh(split, {}), Mesh({{"a", 2}, {"b", 2}, {"y", 2}}));
  EXPECT_TRUE(throws_error([&] { manual_mesh(split["a"], SourceLocation::current()); },
                           ErrorCode::kInvalidArgument, {"axis a", "mesh<x=4, y=2>"}));
}

TEST(ManualSharding, WithoutAMeshTheGlobalOneIsMeant) {
  EXPECT_TRUE(throws_error([] { enable_manual_sharding(recorded({8}), P("x")); },
                           ErrorCode::kFailedPrecondition,
                           {"manual_sharding_test.cc:", "no global mesh is set"}));
  MeshScope scope(eight());
  Tensor local = enable_manual_sharding(recorded({8, 6}), P("x", "y"));
  EXPECT_EQ(local.shape(), (Shape{2, 3}));
  EXPECT_EQ(local.placement(), R"(manual over {"x", "y"} of mesh<x=4, y=2>)");
  Tensor full = disable_manual_sharding(local, P("x", "y"), {8, 6});
  EXPECT_EQ(full.sharding(), Sharding(eight(), P("x", "y")));
}

TEST(ManualSharding, MarkedAsManualAValueIsWholeOnEachDevice) {
  Tensor local = mark_manual_sharding(recorded({8, 6}), eight());
  EXPECT_EQ(local.shape(), (Shape{8, 6}));
  EXPECT_EQ(varying(local), "{}");
  EXPECT_EQ(local.placement(), R"(manual over {"x", "y"} of mesh<x=4, y=2>)");
  EXPECT_EQ(mark_manual_sharding(local, eight()).value(), local.value());
  EXPECT_TRUE(throws_error(
      [&] {
        mark_manual_sharding(local, Mesh({{"z", 8}}));
      },
      ErrorCode::kInvalidArgument, {"manual_sharding_test.cc:", "mesh<x=4, y=2>", "mesh<z=8>"}));
  MeshScope scope(eight());
  EXPECT_EQ(mark_manual_sharding(recorded({3})).shape(), (Shape{3}));
}

}  // namespace
}  // namespace meshard
