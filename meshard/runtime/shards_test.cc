#include "meshard/runtime/shards.h"

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using LocalShards = OnPlugin;

TEST_F(LocalShards, OfAnUnevenSizeAreShortAndPaddedAlike) {
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4, 5}, {5});
  EXPECT_TRUE(local_shards(x).empty()) << "still on the host";
  Tensor marked = mark_sharding(x, Mesh({{"x", 4}}, {3, 2, 1, 0}), P("x"));
  std::vector<LocalShard> shards = local_shards(marked);
  ASSERT_EQ(shards.size(), 4u);
  std::vector<std::vector<float>> expected = {{1, 2}, {3, 4}, {5}, {}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(shards[i].position(), static_cast<std::int64_t>(i));
    EXPECT_EQ(shards[i].device_id(), 3 - static_cast<int>(i));
    EXPECT_EQ(shards[i].data().to_vector<float>(), expected[i]);
    EXPECT_EQ(shards[i].padded_data().shape(), (Shape{2}));
    EXPECT_EQ(shards[i].box()[0].size(), static_cast<std::int64_t>(expected[i].size()));
  }
}

TEST_F(LocalShards, CountReplicasAndOutliveTheHandle) {
  std::vector<LocalShard> shards;
  {
    Tensor x = from_host(std::vector<float>{1, 2}, {2});
    Mesh mesh({{"data", 2}, {"model", 2}});
    shards = local_shards(mark_sharding(x, mesh, P("model")) + mark_sharding(x, mesh, P("model")));
  }
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[1].replica_id(), 0);
  EXPECT_EQ(shards[3].replica_id(), 1);
  EXPECT_EQ(shards[3].data().to_vector<float>(), (std::vector<float>{4}));
}

TEST_F(LocalShards, CopiesAreCounted) {
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4}, {4});
  Tensor twice = x + x;
  EXPECT_EQ(num_copies(x), 0u) << "only recorded";
  EXPECT_EQ(num_copies(twice), 0u);
  block_until_ready(twice);
  EXPECT_EQ(num_copies(x), 1u);
  block_until_ready(x * 3);
  EXPECT_EQ(num_copies(x), 1u) << "the same copy";
  Mesh mesh({{"x", 4}});
  block_until_ready(mark_sharding(x, mesh, P("x")) + x);
  EXPECT_EQ(num_copies(x), 2u);
}

}  // namespace
}  // namespace meshard
