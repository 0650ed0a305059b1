#include "meshard/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshard/autodiff/grad.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "meshard/optim/optim.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

constexpr std::int64_t kWidth = 8, kRows = 8;
constexpr int kSteps = 20, kMicrobatches = 4;

// Numbers of both signs that differ from tensor to tensor.
Tensor numbers(Shape shape, int seed) {
  std::vector<float> all(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = 0.05f * static_cast<float>((static_cast<int>(i) * 7 + seed * 13) % 23 - 11);
  return from_host(std::move(all), std::move(shape));
}

struct Layer {
  Tensor weight, bias;
  MESHARD_FIELDS(weight, bias)
  Tensor operator()(const Tensor& x) const { return tanh(matmul(x, weight) + bias); }
};
using Layers = std::vector<Layer>;

struct Batch {
  Tensor x, y;
  MESHARD_FIELDS(x, y)
};

Layers layers(int count) {
  Layers all;
  for (int i = 0; i < count; ++i)
    all.push_back({numbers({kWidth, kWidth}, i), numbers({kWidth}, i + 50)});
  return all;
}

Batch batch_of(int step) {
  return {numbers({kRows, kWidth}, step + 100), numbers({kRows, kWidth}, step + 200)};
}

std::vector<Batch> microbatches_of(const Batch& batch, int count) {
  std::vector<Batch> all;
  std::int64_t rows = kRows / count;
  for (std::int64_t m = 0; m < count; ++m) {
    auto part = [&](const Tensor& whole) {
      Box box{{m * rows, (m + 1) * rows}, {0, kWidth}};
      return from_host(whole.to_host().slice(box));
    };
    all.push_back({part(batch.x), part(batch.y)});
  }
  return all;
}

Tensor through(const Layers& layers, Tensor x) {
  for (const Layer& layer : layers) x = layer(x);
  return x;
}

Tensor squared_error(const Tensor& h, const Tensor& y) { return mean(square(h - y)); }

// What a training run gives: losses, and all parameters at the end.
struct Outcome {
  std::vector<double> losses, parameters;
};

void append_numbers(std::vector<double>& to, const std::vector<Tensor>& tensors) {
  for (const Tensor& each : tensors)
    for (float number : each.to_vector<float>()) to.push_back(number);
}

template <class Optimizer>
Outcome undivided(Layers model, const Optimizer& optimizer, double clip = 0) {
  auto state = optim::init(optimizer, model);
  auto step = jit([&](const Layers& now, const decltype(state)& before, const Batch& batch) {
    auto [loss, gradients] = value_and_grad([](const Layers& layers, const Batch& given) {
      return squared_error(through(layers, given.x), given.y);
    })(now, batch);
    if (clip > 0) gradients = optim::clip_by_global_norm(gradients, clip).first;
    return std::pair(loss, optim::update(optimizer, now, gradients, before));
  });
  Outcome outcome;
  for (int k = 0; k < kSteps; ++k) {
    auto [loss, next] = step(model, state, batch_of(k));
    outcome.losses.push_back(loss.template item<float>());
    model = next.first;
    state = next.second;
  }
  append_numbers(outcome.parameters, structure::tensors(model));
  return outcome;
}

// The model with its layers divided over stages. Each stage has two devices of its own; with
// `uneven`, the last has more than the others.
std::vector<PipelineStage> stages_of(const Layers& model, int count, bool uneven = false,
                                     PipelineStageOptions options = {}) {
  std::vector<PipelineStage> stages;
  for (int s = 0; s < count; ++s) {
    std::vector<std::int64_t> devices{2 * s, 2 * s + 1};
    if (uneven && s + 1 == count)
      for (std::int64_t d = 2 * count; d < 8; ++d) devices.push_back(d);
    Mesh mesh({{"data", static_cast<std::int64_t>(devices.size())}}, devices);
    auto at = [&](int stage) { return static_cast<std::ptrdiff_t>(model.size()) * stage / count; };
    Layers own(model.begin() + at(s), model.begin() + at(s + 1));
    for (Layer& layer : own) layer.weight = mark_sharding(layer.weight, mesh, P(none, "data"));
    if (s == 0)
      stages.emplace_back(
          mesh, own,
          [mesh](const Layers& layers, const Batch& batch) {
            return through(layers, mark_sharding(batch.x, mesh, P("data")));
          },
          options);
    else if (s + 1 < count)
      stages.emplace_back(
          mesh, own,
          [](const Layers& layers, const Tensor& h, const Batch&) { return through(layers, h); },
          options);
    else
      stages.emplace_back(
          mesh, own,
          [](const Layers& layers, const Tensor& h, const Batch& batch) {
            return squared_error(through(layers, h), batch.y);
          },
          options);
  }
  return stages;
}

Outcome divided(Pipeline pipeline, int stages) {
  Outcome outcome;
  for (int k = 0; k < kSteps; ++k)
    outcome.losses.push_back(
        pipeline.step(microbatches_of(batch_of(k), kMicrobatches)).item<float>());
  for (int s = 0; s < stages; ++s)
    append_numbers(outcome.parameters, structure::tensors(pipeline.parameters<Layers>(s)));
  return outcome;
}

void expect_equal(const Outcome& got, const Outcome& expected) {
  EXPECT_THAT(got.losses, Pointwise(DoubleNear(1e-6), expected.losses));
  EXPECT_THAT(got.parameters, Pointwise(DoubleNear(1e-6), expected.parameters));
}

using PipelineRuns = OnPlugin;

TEST_F(PipelineRuns, EqualTheUndividedModelWithEachSchedule) {
  Layers model = layers(4);
  optim::Sgd sgd{.rate = 0.2, .momentum = 0.5};
  Outcome expected = undivided(model, sgd);
  EXPECT_LT(expected.losses.back(), expected.losses.front());
  for (int count : {2, 3, 4})
    for (const PipelineSchedule& schedule :
         {gpipe(count, kMicrobatches), one_forward_one_backward(count, kMicrobatches),
          zero_bubble(count, kMicrobatches)}) {
      SCOPED_TRACE(cat(schedule.name(), ", ", count, " stages"));
      expect_equal(divided(Pipeline(stages_of(model, count), schedule, {.optimizer = sgd}), count),
                   expected);
    }
  SCOPED_TRACE("interleaved");
  expect_equal(
      divided(Pipeline(stages_of(model, 4), interleaved(2, 2, kMicrobatches), {.optimizer = sgd}),
              4),
      expected);
}

TEST_F(PipelineRuns, StagesMayHaveDifferentNumbersOfDevices) {
  Layers model = layers(5);
  optim::AdamW adam{.rate = 0.01, .decay_rank = 2};
  Pipeline pipeline(stages_of(model, 3, /*uneven=*/true),
                    one_forward_one_backward(3, kMicrobatches), {.optimizer = adam});
  auto microbatches = microbatches_of(batch_of(0), kMicrobatches);
  pipeline.backward(microbatches);
  restart();
  pipeline.backward(microbatches);
  EXPECT_EQ(done().buffers_read, 0u) << "what is sent does not go through the host";
  EXPECT_EQ(done().compiles + done().retargets, 0u);
  expect_equal(divided(std::move(pipeline), 3), undivided(model, adam));
}

TEST_F(PipelineRuns, KeepOnlyTheirInputsWithCheckpoint) {
  Layers model = layers(4);
  optim::Sgd sgd{.rate = 0.2};
  for (const PipelineSchedule& schedule :
       {one_forward_one_backward(2, kMicrobatches), zero_bubble(2, kMicrobatches)})
    expect_equal(divided(Pipeline(stages_of(model, 2, false, {.checkpoint = true}), schedule,
                                  {.optimizer = sgd}),
                         2),
                 undivided(model, sgd));
}

TEST_F(PipelineRuns, ClipTheNormOfAllStagesTogether) {
  Layers model = layers(4);
  optim::Adam adam{.rate = 0.01};
  constexpr double kLimit = 0.05;
  expect_equal(divided(Pipeline(stages_of(model, 2), one_forward_one_backward(2, kMicrobatches),
                                {.optimizer = adam, .clip_norm = kLimit}),
                       2),
               undivided(model, adam, kLimit));
}

TEST_F(PipelineRuns, SendWhenTheScheduleSaysSo) {
  Layers model = layers(2);
  optim::Sgd sgd{.rate = 0.2};
  PipelineSchedule late =
      PipelineSchedule::parse(
          "0F0 0F1 0SEND_F1 0SEND_F0 0F2 0F3 0SEND_F2 0SEND_F3 0B3 0B2 0B1 0B0\n"
          "1F1 1F0 1F2 1B2 1B1 1F3 1B0 1B3 1SEND_B3 1SEND_B2 1SEND_B1 1SEND_B0\n")
          .value();
  expect_equal(divided(Pipeline(stages_of(model, 2), late, {.optimizer = sgd}), 2),
               undivided(model, sgd));
}

TEST_F(PipelineRuns, ComputeBothGradientsWhereOnlySomeMicrobatchesHaveThemApart) {
  Layers model = layers(2);
  optim::Sgd sgd{.rate = 0.2};
  PipelineSchedule mixed = PipelineSchedule::parse(
                               "0F0 0F1 0B0 0I1 0F2 0W1 0F3 0B2 0B3\n"
                               "1F0 1I0 1F1 1B1 1W0 1F2 1B2 1F3 1I3 1W3\n")
                               .value();
  Pipeline pipeline(stages_of(model, 2), mixed, {.optimizer = sgd});
  pipeline.backward(microbatches_of(batch_of(0), kMicrobatches));
  EXPECT_EQ(pipeline.stats().peak_activations, mixed.peak_activations());
  expect_equal(divided(std::move(pipeline), 2), undivided(model, sgd));
}

TEST_F(PipelineRuns, CountWhatTheyKeepAndSend) {
  Layers model = layers(4);
  for (const PipelineSchedule& schedule :
       {gpipe(4, 8), one_forward_one_backward(4, 8), zero_bubble(4, 8)}) {
    Pipeline pipeline(stages_of(model, 4), schedule);
    pipeline.backward(microbatches_of(batch_of(0), 8));
    EXPECT_EQ(pipeline.stats().peak_activations, schedule.peak_activations()) << schedule.name();
    // One activation and one gradient for each microbatch and border.
    EXPECT_EQ(pipeline.stats().sends, 2u * 3 * 8) << schedule.name();
  }
}

TEST_F(PipelineRuns, KeepTheBytesOfTheTheory) {
  Layers model = layers(4);
  const std::int64_t rows = 1, activation = rows * kWidth * 4;  // of one microbatch
  for (const PipelineSchedule& schedule : {gpipe(4, 8), one_forward_one_backward(4, 8)}) {
    // With checkpoint, a stage keeps its inputs, and the last one the targets besides.
    Pipeline inputs(stages_of(model, 4, false, {.checkpoint = true}), schedule);
    inputs.backward(microbatches_of(batch_of(0), 8));
    // Otherwise also the result of tanh, from which its derivative is computed. The last stage's
    // error is computed from that result and the targets.
    Pipeline results(stages_of(model, 4), schedule);
    results.backward(microbatches_of(batch_of(0), 8));
    for (std::size_t s = 0; s < 4; ++s) {
      const std::int64_t live = schedule.peak_activations()[s];
      EXPECT_EQ(inputs.stats().peak_activation_bytes[s], live * activation * (s == 3 ? 2 : 1))
          << schedule.name() << ", stage " << s;
      EXPECT_EQ(results.stats().peak_activation_bytes[s], live * activation * (s == 3 ? 3 : 2))
          << schedule.name() << ", stage " << s;
    }
  }
}

// An embedding that is also the last layer's weight, and a value that skips the middle stage.
struct Skipping {
  Tensor h, skipped;
  MESHARD_FIELDS(h, skipped)
};

TEST_F(PipelineRuns, SumTheGradientsOfTiedWeightsAndOfSkippedStages) {
  Tensor shared = numbers({kWidth, kWidth}, 3), middle = numbers({kWidth, kWidth}, 4);
  Batch batch = batch_of(0);
  auto [loss, gradients] = value_and_grad<0, 1>([&](const Tensor& w, const Tensor& v) {
    Tensor h = tanh(matmul(batch.x, w));
    Tensor out = matmul(tanh(matmul(h, v)) * h, matrix_transpose(w));
    return squared_error(out, batch.y);
  })(shared, middle);
  auto mesh = [](std::int64_t first) { return Mesh({{"data", 2}}, {first, first + 1}); };
  std::vector<PipelineStage> stages{
      {mesh(0), shared,
       [](const Tensor& w, const Batch& given) {
         Tensor h = tanh(matmul(given.x, w));
         return Skipping{h, h};
       }},
      {mesh(2), middle,
       [](const Tensor& v, const Skipping& in, const Batch&) {
         return Skipping{tanh(matmul(in.h, v)), in.skipped};
       }},
      {mesh(4), shared,
       [](const Tensor& w, const Skipping& in, const Batch& given) {
         return squared_error(matmul(in.h * in.skipped, matrix_transpose(w)), given.y);
       }},
  };
  for (const PipelineSchedule& schedule : {one_forward_one_backward(3, 2), zero_bubble(3, 2)}) {
    Pipeline pipeline(stages, schedule, {.optimizer = optim::Sgd{.rate = 1}});
    auto both = microbatches_of(batch, 2);
    EXPECT_NEAR(pipeline.backward(both).item<float>(), loss.item<float>(), 1e-6);
    auto expect_near = [](const Tensor& got, const Tensor& expected) {
      EXPECT_THAT(got.to_vector<float>(),
                  Pointwise(testing::FloatNear(1e-6f), expected.to_vector<float>()));
    };
    expect_near(pipeline.gradients<Tensor>(0), std::get<0>(gradients));
    expect_near(pipeline.gradients<Tensor>(1), std::get<1>(gradients));
    expect_near(pipeline.gradients<Tensor>(2), std::get<0>(gradients));
    pipeline.step(both);
    expect_near(pipeline.parameters<Tensor>(0), shared - std::get<0>(gradients));
    expect_near(pipeline.parameters<Tensor>(2), shared - std::get<0>(gradients));
  }
}

// Of one worker, as in an interleaved pipeline, whose first and last stages may share a weight.
TEST_F(PipelineRuns, UpdateTiedWeightsOfStagesOnTheSameDevices) {
  Tensor shared = numbers({kWidth, kWidth}, 3);
  Batch batch = batch_of(0);
  const auto undivided_loss = [](const Tensor& w, const Batch& given) {
    return squared_error(tanh(matmul(tanh(matmul(tanh(matmul(given.x, w)), w)), w)), given.y);
  };
  Mesh mesh({{"data", 4}});
  const auto middle = [](const Tensor& w, const Tensor& h, const Batch&) {
    return tanh(matmul(h, w));
  };
  std::vector<PipelineStage> stages{
      {mesh, shared, [](const Tensor& w, const Batch& given) { return tanh(matmul(given.x, w)); }},
      {mesh, shared, middle},
      {Mesh({{"data", 2}}, {4, 5}), shared,
       [](const Tensor& w, const Tensor& h, const Batch& given) {
         return squared_error(tanh(matmul(h, w)), given.y);
       }}};
  Pipeline pipeline(stages, one_forward_one_backward(3, 2),
                    {.optimizer = optim::Sgd{.rate = 0.5, .momentum = 0.5}});
  Tensor expected = shared, momentum = zeros({kWidth, kWidth});
  for (int k = 0; k < 3; ++k) {
    pipeline.step(microbatches_of(batch, 2));
    momentum = 0.5 * momentum + grad(undivided_loss)(expected, batch);
    expected = expected - 0.5 * momentum;
    for (int s = 0; s < 3; ++s)
      EXPECT_THAT(pipeline.parameters<Tensor>(s).to_vector<float>(),
                  Pointwise(testing::FloatNear(1e-6f), expected.to_vector<float>()));
  }
}

TEST_F(PipelineRuns, LeaveParametersAsTheyWereIfAStageFails) {
  Layers model = layers(2);
  auto fails = std::make_shared<bool>(true);
  std::vector<PipelineStage> stages = stages_of(model, 2);
  stages[1] =
      PipelineStage(stages[1].mesh(), Layers{model[1]},
                    [fails](const Layers& own, const Tensor& h, const Batch& batch) {
                      Tensor out = through(own, h);
                      return squared_error(*fails ? matmul(out, zeros({3, 3})) : out, batch.y);
                    });
  Pipeline pipeline(stages, one_forward_one_backward(2, 2), {.optimizer = optim::Sgd{.rate = 0.2}});
  auto both = microbatches_of(batch_of(0), 2);
  EXPECT_TRUE(throws_error([&] { pipeline.step(both); }, ErrorCode::kInvalidArgument, {"matmul"}));
  std::vector<double> now, before;
  append_numbers(now, structure::tensors(pipeline.parameters<Layers>(0)));
  append_numbers(before, {model[0].weight, model[0].bias});
  EXPECT_EQ(now, before);
  *fails = false;
  float loss = pipeline.step(both).item<float>();
  EXPECT_LT(pipeline.step(both).item<float>(), loss);
}

TEST_F(PipelineRuns, RefuseWhatDoesNotFitTogether) {
  auto both = microbatches_of(batch_of(0), 2);
  PipelineSchedule schedule = one_forward_one_backward(2, 2);
  const auto error_of = [&](std::vector<PipelineStage> stages, auto use) {
    try {
      Pipeline pipeline(std::move(stages), schedule);
      use(pipeline);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto run = [&](Pipeline& pipeline) { pipeline.backward(both); };
  using testing::HasSubstr;
  EXPECT_THAT(error_of(stages_of(layers(3), 3), run), HasSubstr("3 stages for a schedule of 2"));
  std::vector<PipelineStage> good = stages_of(layers(2), 2);
  EXPECT_EQ(error_of(good, run), "no error");
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { p.step(both); }),
              HasSubstr("step() needs PipelineOptions::optimizer"));
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { p.backward(std::vector<Batch>{both[0]}); }),
              HasSubstr("got 1 microbatches for a schedule of 2"));
  EXPECT_THAT(error_of(good,
                       [&](Pipeline& p) {
                         p.backward(std::vector<Batch>{both[0], batch_of(1)});
                       }),
              HasSubstr("microbatch 1 has other types than microbatch 0"));
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { p.backward(std::vector<Tensor>(2, ones({2}))); }),
              HasSubstr("the last argument of stage 0 has another C++ type"));
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { (void)p.parameters<Tensor>(0); }),
              HasSubstr("the parameters of stage 0 have another C++ type"));
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { (void)p.parameters<Layers>(2); }),
              HasSubstr("there is no stage 2"));
  EXPECT_THAT(error_of(good, [&](Pipeline& p) { (void)p.gradients<Layers>(0); }),
              HasSubstr("there are no gradients"));
  EXPECT_THAT(error_of({good[0], good[0]}, run), HasSubstr("is not the first one"));
  EXPECT_THAT(error_of({good[1], good[1]}, run), HasSubstr("is the first one"));
  PipelineStage no_loss(
      good[1].mesh(), layers(1),
      [](const Layers& own, const Tensor& h, const Batch&) { return through(own, h); });
  EXPECT_THAT(error_of({good[0], no_loss}, run),
              HasSubstr("returns the loss, a float of rank 0; it returns (f32[4,8])"));
  PipelineStage other_carry(
      good[1].mesh(), layers(1),
      [](const Layers&, const Layer& h, const Batch&) { return sum(h.bias); });
  EXPECT_THAT(error_of({good[0], other_carry}, run),
              HasSubstr("the second argument of stage 1 has another C++ type"));
}

// A batch whose parts are found by name, with values that are not tensors.
struct NamedBatch {
  std::map<std::string, Tensor> parts;
  float scale = 1;
  Static<std::string> loss{"square"};
  MESHARD_FIELDS(parts, scale, loss)
};

std::vector<PipelineStage> named_stages() {
  std::vector<PipelineStage> stages = stages_of(layers(2), 2);
  return {PipelineStage(stages[0].mesh(), numbers({kWidth}, 1),
                        [](const Tensor& w, const NamedBatch& batch) {
                          const auto x = batch.parts.find("x");
                          if (x == batch.parts.end()) throw std::runtime_error("no x");
                          return x->second * w * batch.scale;
                        }),
          PipelineStage(stages[1].mesh(), numbers({kWidth}, 2),
                        [](const Tensor& w, const Tensor& h, const NamedBatch& batch) {
                          Tensor y = h * w;
                          return mean(batch.loss.value == "square" ? square(y) : abs(y));
                        })};
}

TEST_F(PipelineRuns, TraceAgainWhenWhatIsNoTensorChanges) {
  Pipeline pipeline(named_stages(), one_forward_one_backward(2, 2));
  const auto loss_of = [&](const NamedBatch& one) {
    return pipeline.backward(std::vector<NamedBatch>(2, one)).item<float>();
  };
  Tensor x = numbers({kRows, kWidth}, 3);
  Tensor y = x * numbers({kWidth}, 1) * numbers({kWidth}, 2);
  const float squares = mean(square(y)).item<float>(), absolute = mean(abs(y)).item<float>();
  EXPECT_NEAR(loss_of({{{"x", x}}}), squares, 1e-6);
  EXPECT_NEAR(loss_of({{{"x", x}}, 3.0f}), 9 * squares, 1e-5);
  EXPECT_NEAR(loss_of({{{"x", x}}, 1.0f, {"absolute"}}), absolute, 1e-6);
  EXPECT_NEAR(loss_of({{{"x", x}, {"z", x}}}), squares, 1e-6);
  EXPECT_NEAR(loss_of({{{"a", x * 5.0f}, {"x", x}}}), squares, 1e-6);
  // Without programs after an error, the old batch is traced again too.
  EXPECT_THROW(loss_of({{{"z", x}}}), std::runtime_error);
  EXPECT_NEAR(loss_of({{{"a", x * 5.0f}, {"x", x}}}), squares, 1e-6);
}

TEST_F(PipelineRuns, RefuseMicrobatchesOfDifferentStructures) {
  Pipeline pipeline(named_stages(), one_forward_one_backward(2, 2));
  Tensor x = numbers({kRows, kWidth}, 3);
  const NamedBatch good{{{"x", x}}};
  const NamedBatch others[] = {{{{"z", x}}}, {{{"x", x}}, 2.0f}, {{{"x", x}}, 1.0f, {"absolute"}}};
  for (const NamedBatch& other : others) {
    try {
      pipeline.backward(std::vector<NamedBatch>{good, other});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("microbatch 1 has another structure than microbatch 0"));
    }
  }
}

}  // namespace
}  // namespace meshard
