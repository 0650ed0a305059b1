// In one process; tests/processes/across_program.cc gathers among several.
#include "meshard/runtime/gather.h"

#include "meshard/core.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Gathering = OnPlugin;

TEST_F(Gathering, OneProcessHasTheWholeValue) {
  Mesh mesh({{"x", 4}});
  Tensor x = mark_sharding(arange(6.0), mesh, P("x"));
  EXPECT_EQ(gather(x).to_string(), "[0, 1, 2, 3, 4, 5] f32[6]");
  EXPECT_EQ(gather_to(x * 2, 0)->to_string(), "[0, 2, 4, 6, 8, 10] f32[6]");
  EXPECT_EQ(gather(from_host<float>({1, 2}, {2})).to_string(), "[1, 2] f32[2]");
}

TEST_F(Gathering, AProcessThatDoesNotExist) {
  EXPECT_TRUE(throws_error([] { (void)gather_to(ones({2}), 1); }, ErrorCode::kInvalidArgument,
                           {"gather_test.cc", "there is no process 1 in a run of 1"}));
}

}  // namespace
}  // namespace meshard
