#include <gmock/gmock.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/optim/fsdp.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

PartitionSpec split_spec(Shape shape, const PartitionSpec& spec) {
  Mesh mesh({{"data", 4}, {"model", 2}});
  Tensor layout = zero_layout(abstract_tensor(std::move(shape), DType::f32, mesh, spec), "data");
  return layout.sharding()->spec();
}

TEST(ZeroLayout, SplitsTheFirstDimensionThatCanBe) {
  EXPECT_EQ(split_spec({8, 6}, P(none, "model")), P("data", "model"));
  EXPECT_EQ(split_spec({6, 8}, P("model", none)), P("model", "data"));
  EXPECT_EQ(split_spec({6, 3, 8}, P()), P(none, none, "data")) << "6 and 3 are no multiples of 4";
  EXPECT_EQ(split_spec({6}, P()), P(none));
  EXPECT_EQ(split_spec({8, 8}, P(none, "data")), P(none, "data")) << "uses the axis already";
  EXPECT_EQ(split_spec({}, P()), P());
}

TEST(ZeroLayout, NeedsShardingsAndTheAxis) {
  EXPECT_TRUE(throws_error([] { zero_layout(abstract_tensor({8}, DType::f32), "data"); },
                           ErrorCode::kInvalidArgument, {"no sharding to split further"}));
  EXPECT_TRUE(throws_error(
      [] {
        zero_layout(abstract_tensor({8}, DType::f32, Mesh({{"x", 2}}), P()), "data");
      },
      ErrorCode::kNotFound, {"data"}));
}

}  // namespace
}  // namespace meshard::optim
