#include "meshard/runtime/internal/device_assignment.h"

#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Assigning = OnPlugin;

TEST_F(Assigning, LogicalDevicesAreThePositionsOfTheMesh) {
  const pjrt::Client& client = runtime_client();
  Mesh grid({{"x", 2}, {"y", 2}}, {6, 3, 0, 5});
  EXPECT_EQ(device_assignment(client, grid, {}), (std::vector<int>{6, 3, 0, 5}));
  EXPECT_EQ(device_assignment(client, grid.submesh({"x"}, 5), {}), (std::vector<int>{3, 5}));
  EXPECT_EQ(device_assignment(client, std::nullopt, {}),
            (std::vector<int>{client.addressable_devices()[0]->id()}));
}

TEST_F(Assigning, ADeviceThatDoesNotExist) {
  SourceLocation where = SourceLocation::current();
  EXPECT_EQ(device_of(runtime_client(), 7, where).id(), 7);
  EXPECT_TRUE(throws_error(
      [&] {
        (void)device_assignment(runtime_client(), Mesh({{"x", 2}}, {0, 99}), where);
      },
      ErrorCode::kNotFound,
      {cat("device_assignment_test.cc:", where.line), "device 99 does not exist",
       "0,1,2,3,4,5,6,7"}));
}

}  // namespace
}  // namespace meshard
