// A training step beside JAX's: compile time, steps and memory.
#pragma once
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "bench/timing.h"
#include "meshard/meshard.h"
#include "meshard/pjrt/executable.h"

namespace meshard::bench {

/// Our side of a training contest.
struct OurTraining {
  double compile = 0;  ///< seconds until the first call returns: it traces, compiles and launches
  std::vector<double> losses;
  std::int64_t bytes = 0;  ///< on one device
  /// The seconds of one step, and those until the first call of a function returns that is traced
  /// and compiled anew.
  Side step, compile_again;
};

/// Makes `count` steps from `state` on one batch. `make(name)` returns the jitted function, whose
/// results are {state, loss}.
template <class Make, class State>
OurTraining our_training(Make make, State state, Tensor batch, int count,
                         const std::string& program) {
  OurTraining ours;
  struct Run {
    double returned, done;  // seconds until the call returned, and until all results were there
    Tensor loss;
  };
  auto run = [state = std::make_shared<State>(std::move(state)), batch](const auto& step) {
    double begin = now();
    auto [next, loss] = step(*state, batch);
    double returned = (now() - begin) / 1e6;
    wait_for(loss);
    for (const Tensor& each : structure::tensors(next)) wait_for(each);
    double done = (now() - begin) / 1e6;
    *state = std::move(next);
    return Run{returned, done, loss};
  };
  auto step = make("train_step");
  for (int i = 0; i < count; ++i) {
    auto [returned, done, loss] = run(step);
    if (i == 0) ours.compile = returned;
    ours.losses.push_back(loss.template item<float>());
  }
  if (auto memory = explain(step).memory())
    ours.bytes = memory->arguments + memory->outputs - memory->aliased + memory->temporaries;
  if (!program.empty())
    std::ofstream(program) << view_of(*step.programs().back())
                                  .program.executable()
                                  .executable()
                                  .optimized_program()
                                  .value();
  ours.step = [run, step] { return run(step).done; };
  // Another name is another program, which no cache has.
  ours.compile_again = [run, make, number = 0]() mutable {
    return run(make(cat("train_step", ++number))).returned;
  };
  return ours;
}

/// Adds the rows NAME.compile, NAME.step and NAME.memory for the JAX works `names` -> facts of the
/// same training, measured in turns.
struct TheirTraining {
  std::string name, work;
  const char* peer_work;
  nlohmann::json with;
};
void add_training_rows(Contest& contest, OurTraining ours, int turns,
                       const std::vector<TheirTraining>& theirs);

}  // namespace meshard::bench
