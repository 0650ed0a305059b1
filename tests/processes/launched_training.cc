// Trains a small model and resumes from its last checkpoint. Started by `meshard launch`, and again
// after its processes have been killed (check_launch.py).
//
//   launched_training PATH STEPS EVERY MILLISECONDS
//
// Saves to PATH each EVERY steps; a step takes at least MILLISECONDS. Each process prints the rows
// of a batch that it has read, and process 0 the loss of each step.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "meshard/meshard.h"

namespace {

using namespace meshard;

constexpr std::int64_t kRows = 24, kWidth = 8;

struct State {
  Tensor w;
  optim::AdamState<Tensor> adam;
  MESHARD_FIELDS(w, adam)
};

/// A row depends on its number in the whole of the data only.
HostArray read(int step, const Box& part) {
  HostArray rows = HostArray::zeros({DType::f32, box_shape(part)});
  float* value = rows.mutable_data<float>().data();
  for (std::int64_t row = part[0].start; row < part[0].stop; ++row)
    for (std::int64_t column = 1; column <= kWidth; ++column)
      *value++ = static_cast<float>(
          std::sin(static_cast<double>((row + kRows * step + 1) * column * column)));
  std::printf("step %d rows %lld to %lld\n", step, static_cast<long long>(part[0].start),
              static_cast<long long>(part[0].stop));
  return rows;
}

void train(const std::string& path, int steps, int every, int milliseconds) {
  Processes run = initialize_processes().value();
  Mesh mesh = mesh_1d("data");
  optim::Adam adam{.rate = 0.02};
  auto step = jit(
      [&](const State& state, const Tensor& x) {
        auto loss_of = [&](const Tensor& w) {
          return mean(square(matmul(x, w) - sum(x, {1}, true)));
        };
        auto [loss, gradient] = value_and_grad(loss_of)(state.w);
        auto [w, after] = optim::update(adam, state.w, gradient, state.adam);
        return std::pair(State{w, after}, loss);
      },
      {.donate = {0}});
  Tensor w = mark_sharding(zeros({kWidth, 1}), mesh, P());
  State state{w, optim::init(adam, w)};
  if (io::has_checkpoint(path).value()) state = io::restore(path, state).value();

  for (int i = state.adam.steps.item<std::int32_t>(); i < steps; ++i) {
    ShardedTensor x =
        ShardedTensor::from_callback({DType::f32, {kRows, kWidth}}, Sharding(mesh, P("data")),
                                     [&](const Box& part) { return read(i, part); });
    auto [next, loss] = step(state, x.global());
    state = next;
    const auto value = static_cast<double>(loss.item<float>());
    if (run.process_index() == 0) std::printf("step %d loss %.9g\n", i, value);
    std::fflush(stdout);
    if ((i + 1) % every == 0) io::save(path, state).value();
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  train(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  return 0;
}
