// Programs over several processes, beside JAX's with gloo, and MPI's own all-reduce.
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/contest.h"
#include "bench/timing.h"
#include "meshard/meshard.h"

namespace meshard::bench {
namespace {

// Width, rows and steps of the small step; megabytes that each process adds.
constexpr const char* kWork = "16 64 200 64";

nlohmann::json processes_child(std::int64_t width, std::int64_t rows, int steps,
                               std::int64_t megabytes) {
  Processes run = initialize_processes().value();
  Mesh mesh = mesh_1d("data");
  Tensor x =
      mark_sharding(from_host(HostArray::full<float>({rows, width}, 0.5f)), mesh, P("data", none));
  Tensor w =
      mark_sharding(from_host(HostArray::full<float>({width, width}, 0.01f)), mesh, P(none, none));
  auto step = jit(
      [&](Tensor weight, Tensor in) {
        auto loss_of = [&](Tensor at) { return mean(square(tanh(matmul(in, at)))); };
        auto [loss, gradient] = value_and_grad(loss_of)(weight);
        return std::pair(mark_sharding(weight - gradient * 0.01f, mesh, P(none, none)),
                         mark_sharding(loss, mesh, P()));
      },
      {.name = "step", .donate = {0}});
  nlohmann::json facts;
  double begin = now();
  auto [next, loss] = step(w, x);
  facts["loss"] = loss.item<float>();
  facts["first_launch"] = (now() - begin) / 1e6;
  w = next;
  Least fastest;
  for (int turn = 0; turn < 10; ++turn) {
    begin = now();
    for (int i = 0; i < steps; ++i) {
      auto [after, value] = step(w, x);
      sync(value);
      w = after;
    }
    fastest.take((now() - begin) / 1e6 / steps);
  }
  facts["step"] = fastest.value;

  // Ours and MPI's own, in turns. The results of both are in memory that was not used before.
  const std::int64_t elements = megabytes * 1024 * 1024 / 4;
  auto count = static_cast<std::size_t>(elements);
  std::vector<HostArray> parts = {HostArray::full<float>({elements}, 1.0f)};
  Tensor large = ShardedTensor::from_shards(parts, mesh, P("data")).global();
  auto total = jit([&](Tensor in) { return all_reduce(in, mesh, "data"); }, {.name = "total"});
  std::vector<int> all;
  for (int rank = 0; rank < run.size(); ++rank) all.push_back(rank);
  std::vector<float> from(count, 1.0f);
  Communicator& mpi = *run.communicator();
  Least ours, theirs;
  for (int turn = 0; turn < 6; ++turn) {
    run.barrier("ours").value();
    begin = now();
    Tensor result = total(large);
    sync(result);
    if (turn > 0) ours.take((now() - begin) / 1e6);
    result = {};
    run.barrier("theirs").value();
    begin = now();
    std::unique_ptr<float[]> to(new float[count]);  // uninitialized
    mpi.all_reduce(all, Reduction::kSum, DType::f32, from.data(), to.get(), count).value();
    if (turn > 0) theirs.take((now() - begin) / 1e6);
  }
  facts["all_reduce"] = ours.value;
  facts["mpi"] = theirs.value;
  return facts;
}

// The last line that the command prints, as JSON.
nlohmann::json facts_of(const std::string& command) {
  FILE* output = ::popen(command.c_str(), "r");
  if (!output) throw PeerError("cannot start " + command);
  std::string text;
  char block[4096];
  while (std::size_t size = std::fread(block, 1, sizeof block, output)) text.append(block, size);
  if (::pclose(output) != 0) throw PeerError("failed: " + command + "\n" + text);
  text.erase(text.find_last_not_of('\n') + 1);
  return nlohmann::json::parse(text.substr(text.rfind('\n') + 1));  // gloo prints lines before
}

struct LeastOf {
  Least first_launch, step, all_reduce, mpi;
  double loss = 0;

  void take(const nlohmann::json& facts) {
    first_launch.take(facts["first_launch"]);
    step.take(facts["step"]);
    all_reduce.take(facts["all_reduce"]);
    if (facts.contains("mpi")) mpi.take(facts["mpi"]);
    loss = facts["loss"];
  }
};

void contest_of(Contest& contest, int count) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string our_command = cat("mpirun --allow-run-as-root --oversubscribe -n ", count, " '",
                                      program, "' --child processes ", kWork, " 2>/dev/null");
  const std::string their_command =
      cat("'", contest.python("jax"), "' '", contest.script("jax_processes.py"), "' ", count, " ",
          kWork, " 2>/dev/null");
  LeastOf ours, theirs;
  for (int turn = 0; turn < 3; ++turn) {
    ours.take(facts_of(our_command));
    theirs.take(facts_of(their_command));
  }
  const std::string group = cat("processes.", count, "."), in = cat(" in ", count, " processes");
  const std::string note = cat("losses differ by ", std::abs(ours.loss - theirs.loss));
  const std::string& title = contest.title("jax");  // `JAX 0.10.2 on ...`
  const std::string jax = title.substr(0, title.find_first_of(" ,", 4)) + " with gloo";
  auto add = [&](std::string name, std::string work, std::string unit, double own, double other,
                 std::string other_name, double allowed) {
    contest.report().add({.name = group + std::move(name),
                          .work = std::move(work),
                          .unit = std::move(unit),
                          .ours = own,
                          .floor = other,
                          .floor_name = std::move(other_name),
                          .goal = cat("at most ", allowed, " times theirs"),
                          .bound = other * allowed,
                          .note = note});
  };
  add("step", "a step of 16 x 16 weights, data parallel, and wait," + in, "us",
      ours.step.value * 1e6, theirs.step.value * 1e6, jax, 0.1);
  add("first", "the first call of that step, with compiling it," + in, "ms",
      ours.first_launch.value * 1e3, theirs.first_launch.value * 1e3, jax, 1);
  add("all_reduce", "all-reduce of 64 MiB," + in, "ms", ours.all_reduce.value * 1e3,
      theirs.all_reduce.value * 1e3, jax, 1);
  add("all_reduce.mpi", "all-reduce of 64 MiB," + in, "ms", ours.all_reduce.value * 1e3,
      ours.mpi.value * 1e3, "MPI_Allreduce on host memory", 1.1);
}

}  // namespace

int processes_contest_child(const std::vector<std::string>& arguments) {
  auto number = [&](std::size_t i) { return std::atoll(arguments.at(i).c_str()); };
  nlohmann::json facts =
      processes_child(number(0), number(1), static_cast<int>(number(2)), number(3));
  if (processes().rank() == 0) std::printf("%s\n", facts.dump().c_str());
  return 0;
}

void processes_contest(Contest& contest) {
  if (!contest.has("jax")) return;
  for (int count : {2, 4})
    contest.attempt(cat("processes.", count), [&] { contest_of(contest, count); });
}

}  // namespace meshard::bench
