#include "meshard/optim/average.h"

#include <gmock/gmock.h>

#include "meshard/optim/fsdp.h"
#include "meshard/optim/optim_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using Averages = OnPlugin;

// The averages of 1, 3, 8, 2, ... after each of them.
std::vector<float> averages(const Average& options, const std::vector<double>& values) {
  Tensor like = zeros({2});
  AverageState<Tensor> state = init(options, like);
  auto step = jit([&](Tensor p, AverageState<Tensor> s) { return update(options, p, s); });
  std::vector<float> out;
  for (double value : values) {
    state = step(full({2}, value), state);
    out.push_back(averaged(state, like).to_vector<float>()[1]);
  }
  EXPECT_EQ(step.stats().traces, 1u);
  return out;
}

TEST_F(Averages, AreExponentialOrEqual) {
  EXPECT_THAT(averages({.decay = 0.75}, {1, 3, 8}), testing::ElementsAre(1, 1.5f, 3.125f));
  EXPECT_THAT(averages({}, {1, 3, 8}), testing::ElementsAre(1, 2, 4));
  // Of the numbers 1 and 3: until then the parameters themselves, here 0.
  EXPECT_THAT(averages({.start = 1, .every = 2}, {1, 3, 8, 7}), testing::ElementsAre(0, 3, 3, 5));
}

TEST_F(Averages, OfNarrowParametersAreF32AndSharded) {
  Mesh mesh({{"data", 2}});
  Tensor w = mark_sharding(full({4}, 1.0, DType::bf16), mesh, P());
  Average ema{.decay = 0.5};
  AverageState<Tensor> state = init(ema, w, zero_layout(w, "data"));
  state = update(ema, w, state);
  state = update(ema, w + full({}, std::ldexp(1.0, -7), DType::bf16), state);
  EXPECT_EQ(state.mean.dtype(), DType::f32);
  EXPECT_EQ(state.mean.sharding()->spec(), P("data"));
  EXPECT_THAT(state.mean.to_vector<float>(), testing::Each(1 + std::ldexp(1.0f, -8)));
  Tensor model = averaged(state, w);
  EXPECT_EQ(model.dtype(), DType::bf16);
  EXPECT_TRUE(model.sharding()->is_fully_replicated());
}

TEST_F(Averages, RefuseOptionsOutOfRange) {
  EXPECT_TRUE(throws_error([] { init(Average{.decay = 1.5}, ones({2})); },
                           ErrorCode::kInvalidArgument, {"not 1.5"}));
  EXPECT_TRUE(throws_error([] { init(Average{.every = 0}, ones({2})); },
                           ErrorCode::kInvalidArgument, {"not 0 and 0"}));
  EXPECT_TRUE(throws_error([] { update(Average{}, ones({3}), init(Average{}, ones({2}))); },
                           ErrorCode::kInvalidArgument, {"f32[3]"}));
}

}  // namespace
}  // namespace meshard::optim
