// Times of calls and of training steps on one device. jax_rows.py measures the same in JAX.
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "meshard/meshard.h"
#include "tools/hardware/check.h"

namespace meshard::hardware {
namespace {

// Each call halves `count` parameters of 8 x 8 and adds 1.
void calls(int count) {
  std::vector<Tensor> state;
  for (int i = 0; i < count; ++i)
    state.push_back(
        mark_sharding(from_host(HostArray::full<float>({8, 8}, 1.0f)), one_device(), P()));
  auto step = jit(
      [](std::vector<Tensor> all) {
        for (Tensor& each : all) each = each * 0.5f + 1.0f;
        return all;
      },
      JitOptions{.name = "calls"});
  double seconds = least_seconds([&] {
    for (int i = 0; i < 10; ++i) state = step(state);
    block_until_ready(state);
  });
  measured(cat("call.", count), seconds / 10, "s");
}

// The same numbers in jax_rows.py: row i, column j of a weight of n rows.
Tensor weight(std::int64_t rows, std::int64_t columns) {
  Tensor i = iota(DType::f32, {rows, columns}, 0), j = iota(DType::f32, {rows, columns}, 1);
  return sin(i * 3.0f + j * 7.0f) * (1.0f / std::sqrt(static_cast<float>(rows)));
}

void training(std::int64_t batch, std::int64_t width) {
  auto loss_of = [](const std::vector<Tensor>& w, Tensor x, Tensor y) {
    Tensor h = tanh(matmul(x, w[0]));
    h = tanh(matmul(h, w[1]));
    return mean(square(matmul(h, w[2]) - y));
  };
  auto step = jit(
      [loss_of](std::vector<Tensor> w, Tensor x, Tensor y) {
        auto [loss, gradients] = value_and_grad(loss_of)(w, x, y);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] = w[i] - gradients[i] * 0.1f;
        return std::pair(w, loss);
      },
      JitOptions{.name = "training", .donate = {0}, .keep_on_disk = false});
  auto [weights, inputs, targets] = jit(
      [&] {
        std::vector<Tensor> made{weight(width, width), weight(width, width), weight(width, 10)};
        return std::tuple(made, weight(batch, width), weight(batch, 10));
      },
      JitOptions{.name = "weights"})();
  std::vector<Tensor> w = weights;
  const Tensor x = inputs, y = targets;
  block_until_ready(w, x, y);
  double begin = seconds_now();
  Tensor loss;
  std::tie(w, loss) = step(w, x, y);
  block_until_ready(w, loss);
  measured("training.compile", seconds_now() - begin, "s");
  for (int i = 1; i < 20; ++i) std::tie(w, loss) = step(w, x, y);
  measured("training.loss", loss.item<float>(), "", "after 20 steps");
  double seconds = least_seconds([&] {
    std::tie(w, loss) = step(w, x, y);
    block_until_ready(w, loss);
  });
  measured("training.step", seconds, "s");
}

}  // namespace

void rows_step() {
  for (int count : {2, 20, 200})
    check(cat("calls-of-", count), [&] {
      calls(count);
      return std::string();
    });
  check("training-runs", [] {
    std::int64_t width = is_slow() ? 256 : 2048;
    measured("training.width", static_cast<double>(width), "");
    training(width / 2, width);
    return std::string();
  });
}

}  // namespace meshard::hardware
