// tests/e2e/manual_test.cc tests its values.
#include "meshard/ops/composite/axis_index.h"

#include <gtest/gtest.h>

#include "meshard/ops/composite/manual.h"
#include "meshard/ops/manual_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(AxisIndex, IsAScalarThatVaries) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  int calls = 0;
  manual(mesh, P("x"), P("x"), [&](const Tensor& x) {
    ++calls;
    EXPECT_EQ(axis_index("y").type(), (TensorType{DType::i32, {}}));
    EXPECT_EQ(varying(axis_index("y")), R"({"y"})");
    EXPECT_EQ(varying(axis_index({"y", "x"})), R"({"x", "y"})");
    EXPECT_TRUE(throws_error([] { axis_index("z"); }, ErrorCode::kInvalidArgument,
                             {"axis \"z\" is not manual here", "axis_index_test.cc:"}));
    return x;
  })(input({4}));
  EXPECT_EQ(calls, 1);
}

TEST(AxisIndex, CountsAlongTheAxesOfRegionsInsideOthers) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  int calls = 0;
  auto inner = manual(mesh, P("y"), P("y"),
                      [&](const Tensor& part) {
                        ++calls;
                        EXPECT_EQ(varying(axis_index("x")), R"({"x"})");
                        EXPECT_EQ(varying(axis_index({"y", "x"})), R"({"x", "y"})");
                        EXPECT_EQ(axis_index({"y", "x"}).type(), (TensorType{DType::i32, {}}));
                        return part;
                      },
                      {.axes = {"y"}});
  manual(mesh, P("x"), P("x"), inner, {.axes = {"x"}})(input({4}));
  EXPECT_EQ(calls, 1);
}

TEST(AxisIndex, IsOfTheRegionOfALocalValue) {
  EXPECT_EQ(varying(axis_index(local_input({2}), "y")), R"({"y"})");
  EXPECT_TRUE(throws_error([] { axis_index("x"); }, ErrorCode::kInvalidArgument,
                           {"[axis_index]", "manual()", "axis_index_test.cc:"}));
  EXPECT_TRUE(throws_error([] { axis_index(input({2}), "x"); }, ErrorCode::kInvalidArgument,
                           {"is a full value"}));
}

}  // namespace
}  // namespace meshard
