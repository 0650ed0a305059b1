#include <algorithm>

#include "meshard/nn/nn_testutil.h"
#include "meshard/nn/norm.h"
#include "tests/support/matchers.h"

namespace meshard::nn {
namespace {

using Dropout = OnPlugin;

TEST_F(Dropout, DropsAPartAndScalesTheRest) {
  Tensor x = ones({100, 100});
  std::vector<float> out = dropout(x, 0.2, random::key(1)).to_vector<float>();
  auto dropped = std::count(out.begin(), out.end(), 0.0f);
  EXPECT_NEAR(double(dropped), 2000, 200) << "five deviations of a binomial: 5 * 40";
  EXPECT_EQ(std::count(out.begin(), out.end(), 1.25f), 10000 - dropped);
  EXPECT_EQ(
      out,
      dropout(mark_sharding(x, Mesh({{"x", 4}}), P("x")), 0.2, random::key(1)).to_vector<float>());
  EXPECT_NE(out, dropout(x, 0.2, random::key(2)).to_vector<float>());
}

TEST_F(Dropout, WithoutAKeyNothingIsDropped) {
  Tensor x = varied({8});
  EXPECT_EQ(dropout(x, 0.5, std::nullopt).value(), x.value());
  EXPECT_TRUE(
      throws_error([&] { dropout(x, 1.5, random::key(1)); }, ErrorCode::kInvalidArgument, {"1.5"}));
}

}  // namespace
}  // namespace meshard::nn
