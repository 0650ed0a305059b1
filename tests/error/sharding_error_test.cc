// Invalid meshes and shardings.
#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

constexpr auto kInvalid = ErrorCode::kInvalidArgument;

struct ShardingErrors : testing::Test {
  ShardingErrors() { fake_runtime(); }
  Mesh mesh{{{"data", 2}, {"model", 4}}};
  Tensor x = f32({8, 8});
};

TEST_F(ShardingErrors, Specs) {
  EXPECT_ERROR_HERE(mark_sharding(x, mesh, P("modle")), ErrorCode::kNotFound, "modle",
                    "mesh<data=2, model=4>");
  EXPECT_ERROR_HERE(mark_sharding(x, mesh, P("data", "data")), kInvalid, "data");
  EXPECT_ERROR_HERE(mark_sharding(x, mesh, P("data", none, none)), kInvalid, "3", "f32[8,8]", "2");
  EXPECT_ERROR_HERE(mark_sharding(x + 1, mesh, P("z")), ErrorCode::kNotFound, "\"z\"",
                    "mesh<data=2, model=4>");
}

TEST_F(ShardingErrors, Meshes) {
  EXPECT_ERROR_HERE(Mesh({{"x", 2}}, {3, 3}), kInvalid, "3");
  EXPECT_ERROR_HERE(Mesh({{"x", 2}}, {1, 2, 3}), kInvalid, "3", "2");
  EXPECT_ERROR_HERE(Mesh({{"x", 2}, {"x", 4}}), kInvalid, "x");
  EXPECT_ERROR_HERE(Mesh({{"x", 0}}), kInvalid, "0");
}

TEST_F(ShardingErrors, MoreDevicesThanExist) {
  Mesh large({{"x", 16}});
  EXPECT_ERROR_HERE(mark_sharding(x, large, P("x")), ErrorCode::kNotFound,
                    "device 8 does not exist", "0,1,2,3,4,5,6,7");
  Tensor recorded = mark_sharding(x + 1, large, P("x"));
  EXPECT_ERROR_HERE(recorded.to_host(), ErrorCode::kNotFound, "device 8 does not exist");
  EXPECT_ERROR_HERE(sync({recorded}), ErrorCode::kNotFound, "device 8 does not exist");
}

TEST_F(ShardingErrors, TwoSetsOfDevices) {
  std::uint32_t line = __LINE__ + 1;
  Tensor a = mark_sharding(x, Mesh({{"x", 2}}), P("x"));
  Tensor b = mark_sharding(x, Mesh({{"y", 2}}, {2, 3}), P("y"));
  EXPECT_TRUE(throws_error([&] { (void)(a + b).to_host(); }, kInvalid,
                           {"two different sets of devices", "mesh<x=2>",
                            "mesh<y=2; devices=[2,3]>", cat("sharding_error_test.cc:", line),
                            cat("sharding_error_test.cc:", line + 1), "transfer()"}));
}

}  // namespace
}  // namespace meshard
