// Loops over nn::Layers: the values and derivatives of the same loops over a vector of layers, and
// the number of loops in the program.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "meshard/meshard.h"
#include "meshard/runtime/loaded_program.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kLayers = 4, kWidth = 8;

struct TanhBlock {
  nn::RmsNorm norm;
  nn::Linear up;
  nn::Linear down;
  MESHARD_FIELDS(norm, up, down)
};
TanhBlock make_tanh_block(nn::Maker& make) {
  return {nn::make_rms_norm(make, kWidth),
          nn::make_linear(make, kWidth, 2 * kWidth, {"embed", "hidden"}),
          nn::make_linear(make, 2 * kWidth, kWidth, {"hidden", "embed"})};
}
Tensor apply_block(const TanhBlock& block, const Tensor& x) {
  return x + nn::linear(block.down, tanh(nn::linear(block.up, nn::rms_norm(block.norm, x))));
}

template <class Blocks>
struct LayeredModel {
  nn::Linear first;
  Blocks blocks;
  nn::RmsNorm norm;
  MESHARD_FIELDS(first, blocks, norm)
};
using StackedModel = LayeredModel<nn::Layers<TanhBlock>>;
using SeparateModel = LayeredModel<std::vector<TanhBlock>>;

StackedModel make_stacked_model(nn::Maker& make) {
  return {nn::make_linear(make, kWidth, kWidth), nn::make_layers(make, kLayers, make_tanh_block),
          nn::make_rms_norm(make, kWidth)};
}
SeparateModel separate(const StackedModel& model) {
  return {model.first, model.blocks.unstacked(), model.norm};
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}
template <class F, class... Arguments>
std::size_t loops_of(const F& f, const Arguments&... arguments) {
  return occurrences(module_text(jit(f), arguments...), "stablehlo.while");
}

void expect_near(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.type(), expected.type());
  EXPECT_THAT(got.to_vector<float>(),
              testing::Pointwise(testing::FloatNear(2e-5F), expected.to_vector<float>()));
}
void expect_near(const StackedModel& got, const SeparateModel& expected) {
  std::vector<Tensor> stacked = structure::tensors(got),
                      other = structure::tensors(StackedModel{
                          expected.first, nn::stack_layers(expected.blocks), expected.norm});
  ASSERT_EQ(stacked.size(), other.size());
  for (std::size_t i = 0; i < stacked.size(); ++i) expect_near(stacked[i], other[i]);
}

class LayersOnDevices : public OnDevices {
 protected:
  StackedModel model_ = nn::create({}, 3, make_stacked_model);
  Tensor x_ = random::normal(random::key(7), {4, kWidth});
};

constexpr auto layered_loss = [](const auto& model, const Tensor& x) {
  Tensor h = nn::linear(model.first, x);
  for (const TanhBlock& block : model.blocks) h = apply_block(block, h);
  return mean(square(nn::rms_norm(model.norm, h) - exp(x)));
};

TEST_F(LayersOnDevices, ValuesAndGradients) {
  EXPECT_EQ(loops_of(layered_loss, model_, x_), 1u);
  EXPECT_EQ(loops_of(grad(layered_loss), model_, x_), 2u);
  SeparateModel plain = separate(model_);
  expect_near(jit(layered_loss)(model_, x_), jit(layered_loss)(plain, x_));
  expect_near(jit(grad(layered_loss))(model_, x_), jit(grad(layered_loss))(plain, x_));
  expect_near(grad(layered_loss)(model_, x_), grad(layered_loss)(plain, x_));
  expect_near(jit(grad<1>(layered_loss))(model_, x_), jit(grad<1>(layered_loss))(plain, x_));
}

TEST_F(LayersOnDevices, Batches) {
  auto all = [](const auto& model, const Tensor& x) {
    return vmap([&](const Tensor& row) {
      return layered_loss(model, reshape(row, {1, kWidth}));
    })(x);
  };
  EXPECT_EQ(loops_of(all, model_, x_), 1u);
  expect_near(jit(all)(model_, x_), jit(all)(separate(model_), x_));
  auto gradient = [&](const auto& model, const Tensor& x) {
    return vmap(grad<1>(layered_loss), {.in_axes = {none, 0}})(model, reshape(x, {4, 1, kWidth}));
  };
  EXPECT_EQ(loops_of(gradient, model_, x_), 2u);
  expect_near(jit(gradient)(model_, x_), jit(gradient)(separate(model_), x_));
}

TEST_F(LayersOnDevices, CheckpointedLayers) {
  auto loss = [](const auto& model, const Tensor& x) {
    Tensor h = x;
    for (const TanhBlock& block : model.blocks) h = checkpoint(apply_block)(block, h);
    return mean(square(nn::rms_norm(model.norm, nn::linear(model.first, h)) - exp(x)));
  };
  EXPECT_EQ(loops_of(grad(loss), model_, x_), 2u);
  expect_near(jit(grad(loss))(model_, x_), jit(grad(loss))(separate(model_), x_));
}

TEST_F(LayersOnDevices, ForwardAndSecondDerivatives) {
  auto loss = [&](const Tensor& x) { return layered_loss(model_, x); };
  SeparateModel plain = separate(model_);
  auto other = [&](const Tensor& x) { return layered_loss(plain, x); };
  expect_near(jvp(loss, x_, ones({4, kWidth})).second, jvp(other, x_, ones({4, kWidth})).second);
  expect_near(hvp(loss, x_, ones({4, kWidth})), hvp(other, x_, ones({4, kWidth})));
  expect_near(jacrev(loss)(x_), jacrev(other)(x_));
}

TEST_F(LayersOnDevices, LayersInReverse) {
  auto loss = [](const auto& model, const Tensor& x) {
    Tensor h = x;
    for (std::size_t i = model.blocks.size(); i-- > 0;) h = apply_block(model.blocks[i], h);
    return mean(square(h));
  };
  EXPECT_EQ(loops_of(loss, model_, x_), 1u);
  expect_near(jit(grad<1>(loss))(model_, x_), jit(grad<1>(loss))(separate(model_), x_));
}

TEST_F(LayersOnDevices, DropoutWithAKeyForEachLayer) {
  auto loss = [](const auto& model, const Tensor& x) {
    Tensor h = x;
    for (std::size_t i = 0; i < kLayers; ++i) {
      Tensor key = random::fold_in(random::key(5), static_cast<std::int64_t>(i));
      h = nn::dropout(apply_block(model.blocks[i], h), 0.25, key);
    }
    return mean(square(h));
  };
  EXPECT_EQ(loops_of(loss, model_, x_), 1u);
  expect_near(jit(loss)(model_, x_), jit(loss)(separate(model_), x_));
  expect_near(jit(grad<1>(loss))(model_, x_), jit(grad<1>(loss))(separate(model_), x_));
}

TEST_F(LayersOnDevices, MasksAndSums) {
  auto loss = [](const auto& model, const Tensor& x) {
    Tensor h = x, sum = full({}, 0.5F);
    for (const TanhBlock& block : model.blocks) {
      h = where(less(iota(DType::i32, {4, kWidth}, 1), 6), apply_block(block, h), 0);
      sum = sum + mean(h);
    }
    return sum * mean(square(h));
  };
  EXPECT_EQ(loops_of(loss, model_, x_), 1u);
  expect_near(jit(grad<1>(loss))(model_, x_), jit(grad<1>(loss))(separate(model_), x_));
}

TEST_F(LayersOnDevices, InsideOfALoop) {
  auto repeated = [](const auto& model, const Tensor& x) {
    return sum(repeat(3, x, [&](const Tensor& state) {
      Tensor h = state;
      for (const TanhBlock& block : model.blocks) h = apply_block(block, h);
      return h;
    }));
  };
  EXPECT_EQ(loops_of(repeated, model_, x_), 2u);
  expect_near(jit(repeated)(model_, x_), jit(repeated)(separate(model_), x_));
  expect_near(jit(grad<1>(repeated))(model_, x_), jit(grad<1>(repeated))(separate(model_), x_));
}

TEST_F(LayersOnDevices, OutsideOfJit) {
  auto all = [](const auto& blocks, const Tensor& x) {
    Tensor h = x;
    for (const TanhBlock& block : blocks) h = apply_block(block, h);
    return h;
  };
  expect_near(all(model_.blocks, x_), all(model_.blocks.unstacked(), x_));
}

TEST_F(LayersOnDevices, ShardedLayers) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  nn::AxisRules rules(mesh, {{"batch", "data"}, {"hidden", "model"}});
  StackedModel sharded = nn::create(rules, 3, make_stacked_model);
  EXPECT_EQ(sharded.blocks.stacked.up.weight.sharding()->spec(), P(none, none, "model"));
  Tensor x = rules.mark(x_, P("batch", none));
  auto f = jit(grad(layered_loss));
  StackedModel gradient = f(sharded, x);
  expect_near(gradient, jit(grad(layered_loss))(separate(model_), x_));
  EXPECT_THAT(f.stats().unrolled, IsEmpty());
}

TEST_F(LayersOnDevices, ExplicitAxes) {
  Mesh mesh({{"data", 2, AxisKind::kExplicit}, {"model", 4, AxisKind::kExplicit}});
  nn::AxisRules rules(mesh, {{"batch", "data"}});
  StackedModel placed = nn::create(rules, 3, make_stacked_model);
  Tensor x = rules.mark(x_, P("batch", none));
  EXPECT_EQ(loops_of(layered_loss, placed, x), 1u);
  expect_near(jit(layered_loss)(placed, x), jit(layered_loss)(separate(model_), x_));
  expect_near(jit(grad(layered_loss))(placed, x), jit(grad(layered_loss))(separate(model_), x_));
}

// The residual connections of an unrolled model and their gradient
// (lowering/internal/shared_values.h).
TEST_F(LayersOnDevices, TheProgramOfUnrolledLayersGrowsWithTheirNumber) {
  if (runtime_client().platform() != "cpu") GTEST_SKIP() << "about the CPU compiler";
  auto size = [](std::size_t layers) {
    auto gradient = jit(grad([](const std::vector<Tensor>& weights, const Tensor& x) {
      Tensor y = x;
      for (const Tensor& weight : weights) {
        Tensor centered = y - mean(y, -1, true);
        y = y + matmul(centered * rsqrt(mean(square(centered), -1, true) + 1.0f), weight);
      }
      return sum(square(y));
    }));
    gradient(std::vector<Tensor>(layers, eye(16)), random::normal(random::key(1), {4, 8, 16}));
    return gradient.programs()
        .back()
        ->loaded()
        ->executable()
        .executable()
        .optimized_program()
        ->size();
  };
  std::size_t one = size(8), two = size(16), four = size(32);
  // 2 if the growth is linear, 4 if it is quadratic.
  EXPECT_LT(four - two, 2.5 * static_cast<double>(two - one)) << one << ", " << two << ", " << four;
}

// A sum of many arrays, which its users read from memory, has the bits of the sum.
TEST_F(LayersOnDevices, SharedSumsAreExact) {
  const std::vector<float> special{-0.0f, 0.0f, INFINITY, -INFINITY, NAN, 3.4e38f, 1.2e-38f, 1.0f};
  auto f = jit([](const std::vector<Tensor>& parts) {
    Tensor sum = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
    return std::pair(sum, -sum);
  });
  std::vector<Tensor> parts{from_host(std::vector<float>(special), {8})};
  for (int i = 0; i < 8; ++i) parts.push_back(full({8}, -0.0f));
  auto [sum, negative] = f(parts);
  std::vector<float> sums = sum.to_vector<float>(), negatives = negative.to_vector<float>();
  for (std::size_t i = 0; i < special.size(); ++i) {
    if (std::isnan(special[i])) {
      EXPECT_TRUE(std::isnan(sums[i]) && std::isnan(negatives[i]));
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint32_t>(sums[i]), std::bit_cast<std::uint32_t>(special[i])) << i;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(negatives[i]), std::bit_cast<std::uint32_t>(-special[i]))
        << i;
  }
}

TEST_F(LayersOnDevices, WhatStaysUnrolledIsReported) {
  auto f = jit([](const StackedModel& model, const Tensor& x) {
    Tensor h = x;
    std::vector<Tensor> kept;
    for (const TanhBlock& block : model.blocks) kept.push_back(h = apply_block(block, h));
    return sum(h * kept[1]);
  });
  f(model_, x_);
  JitStats stats = f.stats();
  ASSERT_EQ(stats.unrolled.size(), 1u);
  EXPECT_EQ(stats.unrolled[0].layers, kLayers);
  EXPECT_THAT(stats.unrolled[0].to_string(),
              testing::AllOf(HasSubstr("layers_test.cc:"), HasSubstr("4 layers of an nn::Layers"),
                             HasSubstr("a value of layer 1"), HasSubstr("used after the layers")));
}

TEST_F(LayersOnDevices, PrintsKeepTheLayers) {
  auto f = jit([](const nn::Layers<TanhBlock>& blocks, const Tensor& x) {
    Tensor h = x;
    for (const TanhBlock& block : blocks) {
      h = apply_block(block, h);
      debug_print("mean {}", mean(h));
    }
    return h;
  });
  f(model_.blocks, x_);
  EXPECT_EQ(f.stats().unrolled.size(), 1u);
}

TEST_F(LayersOnDevices, TrainingStepWithAdam) {
  optim::AdamW adam{.rate = 1e-2, .weight_decay = 0.1};
  auto step = [&](const auto& model, const auto& state, const Tensor& x) {
    return optim::update(adam, model, grad(layered_loss)(model, x), state);
  };
  SeparateModel plain = separate(model_);
  auto [now, state] = jit(step)(model_, optim::init(adam, model_), x_);
  auto [other, other_state] = jit(step)(plain, optim::init(adam, plain), x_);
  expect_near(now, other);
}

TEST_F(LayersOnDevices, CheckpointsAreThoseOfAVector) {
  std::string path = testing::TempDir() + "/meshard_layers.safetensors";
  io::save(path, model_).value();
  io::Weights weights = io::Weights::open(path).value();
  EXPECT_TRUE(weights.contains("blocks.3.up.weight"));
  EXPECT_EQ(weights.type("blocks.0.up.weight").value().shape, (Shape{kWidth, 2 * kWidth}));
  SeparateModel from_stacked = io::restore(path, separate(model_)).value();
  expect_near(model_, from_stacked);
  StackedModel again = io::restore(path, nn::describe({}, make_stacked_model)).value();
  expect_near(again, from_stacked);
  io::save(path, from_stacked).value();  // now the tensors of a layer follow each other
  StackedModel from_separate = io::restore(path, nn::describe({}, make_stacked_model)).value();
  expect_near(from_separate, from_stacked);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace meshard
