#include "meshard/ops/composite/mark_sharding.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/mesh/global_mesh.h"
#include "meshard/ops/arithmetic.h"
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

}  // namespace
}  // namespace meshard
