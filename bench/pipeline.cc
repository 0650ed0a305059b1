// Pipelines: what the controller adds to the launches, and how much two stages gain from two cores.
#include "meshard/pipeline/pipeline.h"

#include <pjrt/pjrt_c_api.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "bench/on_devices.h"
#include "bench/raw_api.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/pipeline/schedule/schedule.h"

namespace meshard::bench {
namespace {

Mesh one_device(std::int64_t id) { return Mesh({{"one", 1}}, {id}); }

Tensor ones_at(Shape shape, std::int64_t device) {
  return mark_sharding(from_host(HostArray::full<float>(std::move(shape), 1.0f)),
                       one_device(device), P());
}

void wait_for_gradients(const Pipeline& pipeline) {
  for (int s = 0; s < pipeline.schedule().stages(); ++s) sync(pipeline.gradients<Tensor>(s));
}

PJRT_Buffer* copy_to(const RawClient& client, PJRT_Buffer* buffer, int device) {
  PJRT_Buffer_CopyToDevice_Args copy{};
  copy.struct_size = PJRT_Buffer_CopyToDevice_Args_STRUCT_SIZE;
  copy.buffer = buffer;
  copy.dst_device = client.devices[static_cast<std::size_t>(device)];
  check(client.api, client.api->PJRT_Buffer_CopyToDevice(&copy), "copy");
  return copy.dst_buffer;
}

// Programs with as many arguments and results as those of two stages.
struct StageLaunches {
  std::unique_ptr<RawProgram> first, last, back_last, back_first;
};

StageLaunches stage_launches() {
  using Function = std::vector<Tensor> (*)(const std::vector<Tensor>&);
  const Function forward_first = [](const std::vector<Tensor>& in) {
    return std::vector{tanh(matmul(in[1], in[0]))};
  };
  const Function forward_last = [](const std::vector<Tensor>& in) {
    Tensor h = tanh(matmul(in[1], in[0]));
    return std::vector{mean(square(h)), h};
  };
  const Function backward_first = [](const std::vector<Tensor>& in) {  // sum, x, h, cotangent
    return std::vector{in[0] + matmul(matrix_transpose(in[1]), in[3] * (1 - in[2] * in[2]))};
  };
  const Function backward_last = [](const std::vector<Tensor>& in) {  // sum, w, input, h
    Tensor g = in[3] * (1 - in[3] * in[3]);
    return std::vector{in[0] + matmul(matrix_transpose(in[2]), g),
                       matmul(g, matrix_transpose(in[1]))};
  };
  const Tensor w = ones_at({8, 8}, 0), x = ones_at({4, 8}, 0);
  const auto made = [&](Function function, std::vector<Tensor> arguments) {
    auto jitted = jit(function);
    (void)jitted(arguments);
    return std::make_unique<RawProgram>(raw_runtime_client(), module_of(jitted), 1,
                                        shard_shapes(arguments));
  };
  return {made(forward_first, {w, x}), made(forward_last, {w, x}),
          made(backward_last, {w, w, x, x}), made(backward_first, {w, x, x, x})};
}

// Two stages of one matrix each, so small that the launches are all of the time. Beside it, as many
// launches of programs with as many arguments and results, and as many copies.
void action_row(Report& report) {
  constexpr int kMicrobatches = 8, kActions = 4 * kMicrobatches;
  const std::vector<PipelineStage> stages{
      {one_device(0), ones_at({8, 8}, 0),
       [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); }},
      {one_device(1), ones_at({8, 8}, 1), [](const Tensor& w, const Tensor& h, const Tensor&) {
         return mean(square(tanh(matmul(h, w))));
       }}};
  Pipeline pipeline(stages, one_forward_one_backward(2, kMicrobatches));
  const std::vector<Tensor> batch(kMicrobatches, ones_at({4, 8}, 0));
  const StageLaunches raw = stage_launches();
  const RawClient client = raw_runtime_client();
  const std::vector<float> numbers(4 * 8, 1.0f);
  PJRT_Buffer* sent =
      send(client, numbers.data(), {4, 8}, 0, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);

  OursAndFloor times = in_turns(
      400,  // 1 s: longer than a busy moment of the machine
      [&] {
        double begin = now();
        const Tensor loss = pipeline.backward(batch);
        double time = now() - begin;
        wait_for_gradients(pipeline);
        return time / kActions;
      },
      [&] {
        std::vector<PJRT_Buffer*> copies;
        double begin = now();
        for (int m = 0; m < kMicrobatches; ++m)
          for (RawProgram* program :
               {raw.first.get(), raw.last.get(), raw.back_last.get(), raw.back_first.get()}) {
            program->launch(/*wait_later=*/false);
            program->free_outputs();
            if (program == raw.first.get() || program == raw.back_last.get())
              copies.push_back(copy_to(client, sent, 1));
          }
        double time = now() - begin;
        for (PJRT_Buffer* copy : copies) {
          await_buffer(client.api, copy);
          destroy_buffer(client.api, copy);
        }
        return time / kActions;
      });
  destroy_buffer(client.api, sent);
  report.add({.name = "pipeline.action",
              .work = "a forward or backward pass of 2 tiny stages with its send, until the call "
                      "of backward() returns",
              .unit = "us",
              .ours = times.ours,
              .floor = times.floor,
              .floor_name = "such launches and copies through the C API",
              .goal = "at most 20 us more",
              .bound = times.floor + 20});
}

// Layers that are so small that the plugin computes each in one thread, so that a stage has one
// core whether the other one works or not. They are no loop of the program: two backward passes of
// loops gain only 1.4 times from a second core, pipeline or not. All programs have more than the
// 1,000 operations up to which the plugin runs one in the thread that launches it, which could then
// launch no other.
Tensor small_layers(const Tensor& w, Tensor x) {
  for (int i = 0; i < 20; ++i) x = tanh(matmul(x, w));
  return x;
}

void overlap_row(Report& report) {
  constexpr int kMicrobatches = 16;
  const std::vector<PipelineStage> stages{
      {one_device(0), ones_at({64, 64}, 0),
       [](const Tensor& w, const Tensor& x) { return small_layers(w, x); }},
      {one_device(1), ones_at({64, 64}, 1),
       [](const Tensor& w, const Tensor& h, const Tensor&) { return mean(small_layers(w, h)); }}};
  Pipeline both(stages, one_forward_one_backward(2, kMicrobatches));
  Pipeline one_by_one(stages, gpipe(2, 1));
  const std::vector<Tensor> batch(kMicrobatches, ones_at({128, 64}, 0)), single(1, batch[0]);
  OursAndFloor times = in_turns(
      80,
      [&] {
        double begin = now();
        (void)both.backward(batch);
        wait_for_gradients(both);
        return now() - begin;
      },
      [&] {
        double begin = now();
        for (int m = 0; m < kMicrobatches; ++m) {
          (void)one_by_one.backward(single);
          wait_for_gradients(one_by_one);
        }
        return now() - begin;
      });
  char note[160];
  std::snprintf(note, sizeof note,
                "%.2f times as fast; %d microbatches, so that %.2f is the most; needs 2 idle cores",
                times.floor / times.ours, kMicrobatches, 2.0 * kMicrobatches / (kMicrobatches + 1));
  report.add({.name = "pipeline.overlap",
              .work = "2 stages on 2 devices, each busy with one thread",
              .unit = "ms",
              .ours = times.ours / 1e3,
              .floor = times.floor / 1e3,
              .floor_name = "the same programs, one stage after the other",
              .goal = "at least 1.5 times as fast",
              .bound = times.floor / 1e3 / 1.5,
              .note = note});
}

}  // namespace

void pipeline_rows(Report& report) {
  action_row(report);
  overlap_row(report);
}

}  // namespace meshard::bench
