#include <gtest/gtest.h>

#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

using Ids = std::vector<std::int64_t>;

std::optional<Ids> order_of(const char* name, IntView shape) {
  return board_order(tpu_topology(name).value().devices(), shape);
}

// Orders from JAX 0.10.2 and https://docs.jax.dev/en/latest/_autosummary/jax.make_mesh.html.
TEST(BoardOrder, TwoDevicesOnAChip) {
  EXPECT_EQ(*order_of("v3:2x2", {2, 4}), (Ids{0, 1, 2, 3, 6, 7, 4, 5}));
  EXPECT_EQ(*order_of("tpu7x:2x2x2", {16}),
            (Ids{0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11, 14, 15, 12, 13}));
  EXPECT_FALSE(order_of("tpu7x:4x4x4", {128}));
  Ids rows = *order_of("v2:4x4", {4, 8}), listed = *order_of("v2:4x4", {8, 4});
  EXPECT_EQ(Ids(rows.begin(), rows.begin() + 8), (Ids{0, 1, 2, 3, 10, 11, 8, 9}));
  EXPECT_EQ(Ids(listed.begin(), listed.begin() + 8), (Ids{0, 1, 2, 3, 8, 9, 10, 11}));
}

TEST(BoardOrder, FlatChips) {
  EXPECT_EQ(*order_of("v5e:2x2", {2, 2}), (Ids{0, 1, 3, 2}));
  EXPECT_EQ(*order_of("v6e:2x4", {8, 1}), (Ids{0, 1, 2, 3, 7, 6, 5, 4}));
  EXPECT_EQ(*order_of("v5e:4x4", {1, 16}),
            (Ids{0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4}));
  EXPECT_FALSE(order_of("v5e:4x4", {4, 4}));
  EXPECT_FALSE(order_of("v5p:2x2x1", {4}));
}

TEST(BoardOrder, ABoardBeginsAtTheOrigin) {
  std::vector<DeviceAttributes> board =
      granules_of(tpu_topology("v5e:2x4").value(), Granule::kProcess)[1];
  EXPECT_FALSE(board_order(board, IntVector{4}));
}

}  // namespace
}  // namespace meshard
