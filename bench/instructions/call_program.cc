// Calls a jitted function on the fake plugin, for counting instructions
// (bench/instructions/count_instructions.py).
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "meshard/core.h"

namespace meshard::bench {
namespace {

std::vector<Tensor> halve_and_add(std::vector<Tensor> parameters) {
  for (Tensor& each : parameters) each = each * 0.5f + 1.0f;
  return parameters;
}

using Step = Jit<decltype(&halve_and_add)>;

// Keeps the loop in one function that callgrind can find.
[[gnu::noinline]] void meshard_measured_calls(const Step& step, std::vector<Tensor>& state,
                                              int calls) {
  for (int i = 0; i < calls; ++i) state = step(state);
}

int run(int parameters, int devices, bool donated, int calls) {
  configure_runtime({.cpu_devices = devices}).value();
  Mesh mesh({{"x", devices}});
  std::vector<Tensor> state;
  for (int i = 0; i < parameters; ++i)
    state.push_back(mark_sharding(from_host(HostArray::full<float>({8, 8}, 1.0f)), mesh, P("x")));
  JitOptions options{.name = "parameters"};
  if (donated) options.donate = {0};
  Step step = jit(&halve_and_add, options);
  // The first calls compile, and fill the lists of memory to reuse; finished launches are forgotten
  // by the dozen.
  std::vector<Tensor> one(state.begin(), state.begin() + 1);
  for (int i = 0; i < 200; ++i) one = step(one);
  for (int i = 0; i < 3; ++i) state = step(state);
  meshard_measured_calls(step, state, calls);
  sync(state);
  return 0;
}

}  // namespace
}  // namespace meshard::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s PARAMETERS DEVICES DONATED CALLS\n", argv[0]);
    return 2;
  }
  return meshard::bench::run(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]) != 0,
                             std::atoi(argv[4]));
}
