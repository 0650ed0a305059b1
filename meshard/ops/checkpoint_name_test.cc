#include "meshard/ops/checkpoint_name.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(CheckpointName, NamesAValue) {
  Tensor y = checkpoint_name(input({4}), "mlp");
  EXPECT_EQ(*checkpoint_name_of(*y.value().node()), "mlp");
  EXPECT_EQ(checkpoint_name_of(*input({4}).value().node()), nullptr);
  EXPECT_NE(emitted(y).find("stablehlo.reshape"), std::string::npos);
  for (const char* name : {"", "a,b", "\""})
    EXPECT_TRUE(throws_error([&] { checkpoint_name(input({4}), name); },
                             ErrorCode::kInvalidArgument, {"invalid name"}));
}

}  // namespace
}  // namespace meshard
