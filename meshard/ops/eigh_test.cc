#include "meshard/ops/eigh.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Eigh, TypesAndText) {
  auto [values, vectors] = eigh(input({2, 3, 3}));
  EXPECT_EQ(values.type().to_string() + " " + vectors.type().to_string(), "f32[2,3] f32[2,3,3]");
  std::string text = emitted(values);
  EXPECT_NE(text.find("call_target_name = \"Eigh\""), text.npos) << text;
  EXPECT_TRUE(throws_error(
      [] {
        eigh(input({2, 3}));
      },
      ErrorCode::kInvalidArgument, {"eigh_test.cc:", "[eigh]", "f32[2,3]"}));
  EXPECT_TRUE(throws_error(
      [] {
        eigh(input({3, 3}, DType::c64));
      },
      ErrorCode::kInvalidArgument, {"[eigh]", "c64[3,3]"}));
}

}  // namespace
}  // namespace meshard
