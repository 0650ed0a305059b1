#include "meshard/runtime/internal/pad_on_device.h"

#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using PaddingOnDevice = OnPlugin;

TEST_F(PaddingOnDevice, TilesArePaddedWithZeros) {
  Tensor x = from_host(std::vector<float>{1, 2, 3, 4, 5}, {5}) + 1;
  sync(x);
  Sharding target(Mesh({{"x", 4}, {"y", 2}}, {7, 6, 5, 4, 3, 2, 1, 0}), P("x"));
  restart();
  std::vector<Tensor> tiles =
      tiles_on_device(process_runtime(), x.value(), target, SourceLocation::current());
  EXPECT_EQ(done().buffers_sent + done().buffers_read + done().buffers_moved, 0u);
  EXPECT_EQ(done().launches, 1u);
  ASSERT_EQ(tiles.size(), 4u);
  for (const Tensor& tile : tiles) EXPECT_EQ(tile.placement(), x.placement());
  EXPECT_THAT(tiles[0].to_vector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(tiles[1].to_vector<float>(), ElementsAre(4, 5));
  EXPECT_THAT(tiles[2].to_vector<float>(), ElementsAre(6, 0));
  EXPECT_THAT(tiles[3].to_vector<float>(), ElementsAre(0, 0)) << "nothing but padding";
}

}  // namespace
}  // namespace meshard
