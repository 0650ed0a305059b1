#include "meshard/ops/composite/mark_sharding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/op_testutil.h"
#include "meshard/sharding/dtensor_placements.h"
#include "meshard/sharding/sharding_spec.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh kMesh({{"x", 2}});

TEST(MarkSharding, OfARecordedValueIsAConstraint) {
  Tensor sum = add(input({4, 8}), 1);
  Tensor marked = mark_sharding(sum, kMesh, P("x"));
  EXPECT_EQ(marked.value()->op().name, "sharding_constraint");
  EXPECT_EQ(*marked.sharding(), Sharding(kMesh, P("x", none)));
  EXPECT_FALSE(sum.sharding());
  // Marking with an equal sharding, in any spelling, returns the same tensor.
  EXPECT_EQ(mark_sharding(marked, kMesh, P("x", none)).value(), marked.value());
  EXPECT_EQ(mark_sharding(marked, Sharding(kMesh, P("x"))).value(), marked.value());
}

TEST(MarkSharding, OnlyRecordsInATraceAndUnderDifferentiation) {
  Tensor data = input({4, 8});
  {
    internal::TraceScope trace;
    EXPECT_EQ(mark_sharding(data, kMesh, P("x")).value()->op().name, "sharding_constraint");
  }
  internal::KeepOperandsScope keep;
  EXPECT_EQ(mark_sharding(data, kMesh, P("x")).value()->op().name, "sharding_constraint");
}

// The placements of DTensor's distribute_tensor(x, mesh, [Shard(1)]), and back.
TEST(MarkSharding, AsPlacementsSay) {
  Tensor sum = add(input({4, 8}), 1);
  Tensor marked = mark_sharding(sum, kMesh, Placements{Shard(1)});
  EXPECT_EQ(*marked.sharding(), Sharding(kMesh, P(none, "x")));
  EXPECT_EQ(Placements::of(*marked.sharding()).value(), Placements{Shard(1)});
  EXPECT_EQ(*mark_sharding(sum, kMesh, {Replicate()}).sharding(), Sharding(kMesh, P(none, none)));
  EXPECT_TRUE(throws_error([&] { mark_sharding(sum, kMesh, Placements{Shard(2)}); },
                           ErrorCode::kInvalidArgument,
                           {"mark_sharding_test.cc:", "dimension 2", "rank 2"}));
}

TEST(MarkSharding, AsASpecOfALoaderSays) {
  Tensor batch = add(input({4, 8}), 1);
  Tensor marked = mark_sharding(batch, ShardingSpec::minibatch(kMesh, P("x")));
  EXPECT_EQ(*marked.sharding(), Sharding(kMesh, P("x", none)));
  EXPECT_TRUE(throws_error(
      [] {
        mark_sharding(input({3, 8}), ShardingSpec::minibatch(kMesh, P("x")));
      },
      ErrorCode::kInvalidArgument, {"mark_sharding_test.cc:", "3"}));
}

TEST(MarkSharding, WithoutAMeshTheGlobalOneIsMeant) {
  Tensor sum = add(input({4, 8}), 1);
  EXPECT_TRUE(throws_error([&] { mark_sharding(sum, P("x")); }, ErrorCode::kFailedPrecondition,
                           {"mark_sharding_test.cc:", "no global mesh is set"}));
  MeshScope scope(kMesh);
  EXPECT_EQ(*mark_sharding(sum, P("x")).sharding(), Sharding(kMesh, P("x", none)));
}

TEST(MarkSharding, Errors) {
  EXPECT_TRUE(throws_error(
      [] { mark_sharding(input({4}), kMesh, P("x", none)); }, ErrorCode::kInvalidArgument,
      {"mark_sharding_test.cc:", "[mark_sharding]", "2 dimensions", "f32[4] has 1"}));
  EXPECT_TRUE(throws_error([] { mark_sharding(input({4}), Sharding(kMesh, P("x", none))); },
                           ErrorCode::kInvalidArgument, {"2 dimensions", "f32[4] has 1"}));
  EXPECT_TRUE(throws_error([] { mark_sharding(input({4}), kMesh, P("y")); }, ErrorCode::kNotFound,
                           {"no axis \"y\"", "mesh<x=2>"}));
}

TEST(MarkSharding, StrictSpecsHaveAnEntryForEachDimension) {
  Tensor sum = add(input({4, 8}), 1);
  {
    StrictSpecs strict, nested;
    EXPECT_TRUE(mark_sharding(sum, kMesh, P("x", none)).sharding());
    EXPECT_TRUE(mark_sharding(add(input({}), 1), kMesh, P()).sharding());
    EXPECT_TRUE(throws_error([&] { mark_sharding(sum, kMesh, P("x")); },
                             ErrorCode::kInvalidArgument,
                             {"mark_sharding_test.cc:", "1 dimensions", "has 2", "StrictSpecs"}));
    EXPECT_TRUE(throws_error([&] { mark_sharding(sum, Sharding(kMesh, P())); },
                             ErrorCode::kInvalidArgument, {"0 dimensions"}));
    EXPECT_TRUE(throws_error([&] { mark_sharding(sum, ShardingSpec(kMesh, P("x"))); },
                             ErrorCode::kInvalidArgument, {"1 dimensions"}));
  }
  EXPECT_TRUE(mark_sharding(sum, kMesh, P("x")).sharding());
}

TEST(MarkSharding, UnevenSizesAreRefusedWhereTheMeshSaysSo) {
  Mesh strict = kMesh.with_uneven(Uneven::kError);
  Tensor odd = add(input({3, 8}), 1);
  EXPECT_TRUE(mark_sharding(odd, kMesh, P("x")).sharding());
  EXPECT_TRUE(mark_sharding(odd, strict, P(none, "x")).sharding());
  EXPECT_TRUE(throws_error(
      [&] { mark_sharding(odd, strict, P("x")); }, ErrorCode::kInvalidArgument,
      {"mark_sharding_test.cc:", "dimension 0 of shape (3,8), 3", "2 tiles", "uneven=error"}));
  EXPECT_TRUE(throws_error([&] { mark_sharding(odd, ShardingSpec(strict, P("x"))); },
                           ErrorCode::kInvalidArgument, {"mark_sharding_test.cc:", "2 tiles"}));
}

const Mesh kPair({{"x", 2}});

TEST(ClearSharding, OfARecordedValueIsTheValueBeforeItsMarks) {
  Tensor sum = add(input({4, 8}), 1);
  Tensor marked = mark_sharding(mark_sharding(sum, kPair, P("x")), kPair, P(none, "x"));
  EXPECT_EQ(clear_sharding(marked).value(), sum.value());
  EXPECT_TRUE(marked.sharding()) << "the marked handle stays as it is";
}

TEST(ClearSharding, OfAnUnmarkedValueIsThatValue) {
  Tensor host = input({4}), recorded = add(host, 1);
  EXPECT_EQ(clear_sharding(host).value(), host.value());
  EXPECT_EQ(clear_sharding(recorded).value(), recorded.value());
}

TEST(ClearSharding, InATraceLeavesTheCompilerFree) {
  internal::TraceScope trace;
  Tensor argument = make_parameter({DType::f32, {4, 8}}, Sharding(kPair, P("x", none)), {});
  Tensor cleared = clear_sharding(argument);
  EXPECT_NE(cleared.value(), argument.value());
  EXPECT_FALSE(cleared.sharding());
  EXPECT_TRUE(is_unplaced(cleared.value())) << "it may be used on other devices";
  EXPECT_FALSE(clear_sharding(mark_sharding(argument, kPair, P(none, "x"))).sharding());
}

TEST(ClearSharding, InADifferentiatedFunctionKeepsThePathToItsInput) {
  internal::KeepOperandsScope differentiating;
  Tensor marked = mark_sharding(add(input({4, 8}), 1), kPair, P("x"));
  Tensor cleared = clear_sharding(marked);
  ASSERT_EQ(cleared.value()->operands().size(), 1u);
  EXPECT_EQ(cleared.value()->operands()[0], marked.value());
  EXPECT_FALSE(cleared.sharding());
}

// On a mesh with explicit axes, the value keeps a sharding, whose dimensions all become open.
TEST(ClearSharding, OverExplicitAxes) {
  internal::TraceScope trace;
  Mesh mesh({{"x", 2, AxisKind::kExplicit}, {"y", 2}});
  Tensor argument = make_parameter({DType::f32, {4, 8}}, Sharding(mesh, P("x", "y")), {});
  EXPECT_EQ(clear_sharding(argument).sharding(), Sharding(mesh, P(unconstrained, unconstrained)));
}

}  // namespace
}  // namespace meshard
