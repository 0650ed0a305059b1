#include "meshard/runtime/group_collectives.h"

#include <gtest/gtest.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/leaf.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/sharded_tensor.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Floats = std::vector<float>;

struct GroupCollectives : OnPlugin {
  // mesh<a=2, b=2> over devices in arbitrary order; device (i, j) holds {4i + 2j, 4i + 2j + 1}.
  const Mesh mesh{{{"a", 2}, {"b", 2}}, {6, 1, 4, 3}};
  Tensor eight() const {
    return mark_sharding(from_host(Floats{0, 1, 2, 3, 4, 5, 6, 7}, {8}), mesh, P(axes("a", "b")));
  }
};

TEST_F(GroupCollectives, AllReduceAddsTheShardsOfAGroup) {
  Tensor over_a = all_reduce(eight(), mesh, "a");
  EXPECT_EQ(over_a.to_vector<float>(), (Floats{0 + 4, 1 + 5, 2 + 6, 3 + 7}));
  EXPECT_EQ(over_a.sharding(), Sharding(mesh, P("b")));
  Tensor over_b = all_reduce(eight(), mesh, "b", ReduceKind::kMax);
  EXPECT_EQ(over_b.to_vector<float>(), (Floats{2, 3, 6, 7}));
  EXPECT_EQ(over_b.sharding(), Sharding(mesh, P("a")));
  EXPECT_EQ(all_reduce(eight(), mesh, {"a", "b"}).to_vector<float>(), (Floats{12, 16}));
}

TEST_F(GroupCollectives, AllGatherPutsTheShardsOneAfterTheOther) {
  EXPECT_EQ(all_gather(eight(), mesh, "b").to_vector<float>(), eight().to_vector<float>());
  // Device (i, j) gets the shards of (0, j) and (1, j); axis b still splits.
  Tensor over_a = all_gather(eight(), mesh, "a");
  EXPECT_EQ(over_a.to_vector<float>(), (Floats{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(over_a.sharding(), Sharding(mesh, P("b")));
  EXPECT_EQ(all_gather(eight(), mesh, {"b", "a"}).to_vector<float>(),
            (Floats{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST_F(GroupCollectives, ReduceScatterLeavesEachItsPartOfTheSum) {
  Tensor sums = reduce_scatter(eight(), mesh, "a");
  EXPECT_EQ(sums.to_vector<float>(), (Floats{4, 6, 8, 10}));
  EXPECT_EQ(sums.sharding(), Sharding(mesh, P(axes("b", "a"))));
}

TEST_F(GroupCollectives, AllToAllMovesTheAxisToAnotherDimension) {
  Tensor x = mark_sharding(reshape(arange(8.0), {4, 2}), mesh, P("a", none));
  Tensor y = all_to_all(x, mesh, "a", /*split=*/1, /*concat=*/0);
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(y.sharding(), Sharding(mesh, P(none, "a")));
}

TEST_F(GroupCollectives, BroadcastGivesTheShardOfOne) {
  EXPECT_EQ(broadcast(eight(), mesh, "a", 1).to_vector<float>(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(broadcast(eight(), mesh, {"a", "b"}, 2).to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(broadcast(less(eight(), 5), mesh, "a", 0).to_vector<bool>(),
            (std::vector<bool>{true, true, true, true}));
}

TEST_F(GroupCollectives, OverAMeshTakenFromTheOneOfTheTensor) {
  Mesh flat = mesh.flatten("ab");
  EXPECT_EQ(all_reduce(eight(), flat, "ab").to_vector<float>(), (Floats{12, 16}));
  EXPECT_EQ(all_reduce(eight(), mesh["a"], "a").to_vector<float>(), (Floats{4, 6, 8, 10}));
}

TEST_F(GroupCollectives, OfTensorsOfAGroupAlone) {
  Mesh group = Mesh::from_group(*mesh.group({"b"}, 3), "g");  // devices 4 and 3
  std::vector<Tensor> locals{from_host(Floats{1, 2}, {2}), from_host(Floats{10, 20}, {2})};
  ShardedTensor x = ShardedTensor::from_local(locals, group, P("g"));
  Tensor sum = all_reduce(x.global(), group, "g");
  EXPECT_EQ(sum.to_vector<float>(), (Floats{11, 22}));
  EXPECT_EQ(sum.placement(), "devices 4,3");
}

TEST_F(GroupCollectives, InJitAndDifferentiated) {
  auto f = [&](Tensor x) { return sum(square(all_reduce(x, mesh, "a"))); };
  // d/dx of the sum over j of (x[0,j] + x[1,j])^2 is twice the sum, for both members.
  EXPECT_EQ(jit(grad(f))(eight()).to_vector<float>(), (Floats{8, 12, 16, 20, 8, 12, 16, 20}));
}

TEST_F(GroupCollectives, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  auto refused = [&](auto&& call, std::vector<std::string> what) {
    what.push_back("group_collectives_test.cc:");
    return throws_error(call, invalid, what);
  };
  Tensor none_yet = ones({4}) * 2;
  EXPECT_TRUE(refused([&] { all_reduce(none_yet, mesh, "a"); }, {"has no sharding"}));
  Tensor elsewhere = mark_sharding(ones({4}), Mesh({{"a", 2}}), P("a"));
  EXPECT_TRUE(refused([&] { all_reduce(elsewhere, mesh, "a"); }, {"mesh<a=2>", "6,1,4,3"}));
  Tensor half = mark_sharding(ones({4}), mesh, P("a"));
  EXPECT_TRUE(refused([&] { all_reduce(half, mesh, "b"); }, {"\"b\"", "the same"}));
  Tensor odd = mark_sharding(ones({5}), mesh, P("a"));
  EXPECT_TRUE(refused([&] { all_gather(odd, mesh, "a"); }, {"f32[5]", "evenly"}));
  EXPECT_TRUE(refused([&] { broadcast(half, mesh, "a", 2); }, {"source 2", "groups of 2"}));
  EXPECT_TRUE(refused([&] { reduce_scatter(half, mesh, "a", 1); }, {"dimension 1"}));
}

}  // namespace
}  // namespace meshard
