#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/transfer.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using TransferSpec = OnPlugin;

TEST_F(TransferSpec, PlacesAsTheSpecSays) {
  Tensor x =
      mark_sharding(from_host(std::vector<float>{1, 2, 3, 4}, {4, 1}), Mesh({{"a", 2}}), P("a"));
  Mesh there({{"b", 2}}, {7, 5});
  Tensor moved = transfer(x, ShardingSpec::minibatch(there, P("b")));
  EXPECT_EQ(moved.stored_sharding(), Sharding(there, P("b", none)));
  EXPECT_EQ(moved.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(throws_error(
      [&] {
        transfer(ones({3, 1}), ShardingSpec::minibatch(there, P("b")));
      },
      ErrorCode::kInvalidArgument, {"transfer_spec_test.cc:", "3 rows"}));
}

}  // namespace
}  // namespace meshard
