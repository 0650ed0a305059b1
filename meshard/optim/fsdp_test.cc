#include "meshard/optim/fsdp.h"

#include <gmock/gmock.h>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/optim/optim_testutil.h"
#include "meshard/optim/optimizers.h"
#include "meshard/runtime/shards.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard::optim {
namespace {

using FsdpSteps = OnPlugin;

Tensor fsdp_loss(const TwoTensors& model, const Tensor& batch) {
  return mean(square(matmul(batch, model.weight) + model.bias - 1));
}

TwoTensors whole_model(const Mesh& mesh) {
  TwoTensors model = two_tensors({1, -2, 3, -4, 5, -6, 7, -8}, {0.5f, -0.5f});
  return {mark_sharding(model.weight, mesh, P()), mark_sharding(model.bias, mesh, P())};
}

// Every stage takes the same steps as one device, and splits what it is documented to split.
TEST_F(FsdpSteps, EachStageTrainsAsOneDeviceDoes) {
  Mesh mesh({{"data", 4}}, {5, 0, 3, 6});
  std::vector<float> numbers;
  for (int i = 0; i < 32; ++i) numbers.push_back(static_cast<float>(i % 7) * 0.25f - 0.5f);
  Tensor batch = from_host(numbers, {8, 4});
  Adam adam{.rate = 0.1};

  TwoTensors alone = two_tensors({1, -2, 3, -4, 5, -6, 7, -8}, {0.5f, -0.5f});
  AdamState<TwoTensors> alone_state = init(adam, alone);
  for (int k = 0; k < 3; ++k) {
    auto gradient = grad([&](TwoTensors m) { return fsdp_loss(m, batch); })(alone);
    std::tie(alone, alone_state) = update(adam, alone, gradient, alone_state);
  }

  Tensor spread = mark_sharding(batch, mesh, P("data"));
  Sharding split(mesh, P("data", none)), whole(mesh, P(none, none));
  for (FsdpStage stage : {FsdpStage::kState, FsdpStage::kGradients, FsdpStage::kParameters}) {
    TwoTensors model = whole_model(mesh);
    Fsdp<TwoTensors> fsdp(model, {.stage = stage});
    model = fsdp.place(model);
    AdamState<TwoTensors> state = init(adam, model, fsdp.state_layout());
    auto step = jit([&](TwoTensors m, AdamState<TwoTensors> s, Tensor x) {
      auto gradient = grad([&](TwoTensors v) { return fsdp_loss(v, x); })(m);
      gradient = fsdp.mark_gradients(gradient);
      auto [next, after] = update(adam, m, gradient, s);
      return std::tuple(next, after, gradient);
    });
    TwoTensors gradient;
    for (int k = 0; k < 3; ++k) std::tie(model, state, gradient) = step(model, state, spread);
    SCOPED_TRACE(cat("stage ", static_cast<int>(stage)));
    EXPECT_THAT(numbers_of(model),
                testing::Pointwise(testing::DoubleNear(1e-4), numbers_of(alone)));
    EXPECT_EQ(state.mean.weight.stored_sharding(), split);
    EXPECT_EQ(model.weight.stored_sharding(), stage == FsdpStage::kParameters ? split : whole);
    if (stage >= FsdpStage::kGradients) {
      EXPECT_EQ(gradient.weight.stored_sharding(), split);
    }
    // The bias has 2 elements for 4 devices, so it stays replicated.
    EXPECT_TRUE(model.bias.stored_sharding()->is_fully_replicated());
  }
}

TEST(FsdpLayout, SplitsWhatZeroLayoutSplitsAndSparesTheSmall) {
  Mesh mesh({{"data", 4}, {"model", 2}});
  TwoTensors model{abstract_tensor({8, 6}, DType::f32, mesh, P(none, "model")),
                   abstract_tensor({8}, DType::f32, mesh, P())};
  Fsdp<TwoTensors> all(model), large(model, {.smallest = 9});
  EXPECT_EQ(all.state_layout().weight.sharding()->spec(), P("data", "model"));
  EXPECT_EQ(all.state_layout().bias.sharding()->spec(), P("data"));
  EXPECT_EQ(large.state_layout().weight.sharding()->spec(), P("data", "model"));
  EXPECT_EQ(large.state_layout().bias.sharding(), model.bias.sharding());
  EXPECT_EQ(all.place(model).weight.sharding()->spec(), P("data", "model"));
  Fsdp<TwoTensors> state(model, {.stage = FsdpStage::kState});
  EXPECT_EQ(state.place(model).weight.sharding(), model.weight.sharding());
  EXPECT_EQ(state.mark_gradients(model).weight.sharding(), model.weight.sharding());
}

TEST(FsdpLayout, NeedsShardingsAndTheAxis) {
  EXPECT_TRUE(throws_error([] { Fsdp<Tensor>(abstract_tensor({8}, DType::f32)); },
                           ErrorCode::kInvalidArgument, {"no sharding to split further"}));
  EXPECT_TRUE(throws_error(
      [] {
        Fsdp<Tensor>(abstract_tensor({8}, DType::f32, Mesh({{"x", 2}}), P()), {.smallest = 100});
      },
      ErrorCode::kNotFound, {"data"}));
}

}  // namespace
}  // namespace meshard::optim
