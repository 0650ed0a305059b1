// Repeats small operations many times, and checks that the process does not grow.
//
//   soak [steps=N] [programs=N] [transfers=N] [checkpoints=N] [seconds=N]
//
// steps of one compiled program with donation; different programs; transfers between submeshes,
// with a gather; checkpoints, written and loaded; seconds in which eight threads call, transfer and
// drop values on overlapping submeshes. After the first percent of each, the process's memory,
// threads, file handles, mappings and (with the fake plugin) objects are recorded, and compared at
// the end. Ends with `N passed, N failed`.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "meshard/meshard.h"
#include "tests/soak/usage.h"

namespace {

using namespace meshard;

constexpr std::int64_t kDevices = 8;
// Heap sizes fluctuate: the allowed growth after the first percent. A leak of 16 bytes per step, or
// of one buffer in a hundred transfers, exceeds it.
constexpr std::int64_t kMemorySlack = 16 << 10;  // KiB
constexpr std::int64_t kMappingSlack = 400;
constexpr std::int64_t kThreadSlack = 64;  // thread pools start their threads on demand
constexpr std::int64_t kFileSlack = 8;
constexpr std::int64_t kObjectSlack = 200;

int passed = 0, failed = 0;

void check(const std::string& name, std::int64_t count, const Usage& first, const Usage& last) {
  bool flat =
      last.memory <= first.memory + kMemorySlack && last.threads <= first.threads + kThreadSlack &&
      last.files <= first.files + kFileSlack && last.mappings <= first.mappings + kMappingSlack &&
      last.objects <= first.objects + kObjectSlack;
  (flat ? passed : failed) += 1;
  std::printf("%-12s %lld\n  first %s\n  last  %s\n%s", name.c_str(), static_cast<long long>(count),
              first.to_string().c_str(), last.to_string().c_str(),
              flat ? "" : "  FAILED: it grew\n");
  std::fflush(stdout);
}

void repeated(const std::string& name, std::int64_t count, std::int64_t least,
              const std::function<void(std::int64_t)>& work) {
  if (count <= 0) return;
  std::int64_t warm = std::max(count / 100, std::min(count / 2, least));
  for (std::int64_t i = 0; i < warm; ++i) work(i);
  meshard::sync();
  Usage first = Usage::now();
  for (std::int64_t i = warm; i < count; ++i) work(i);
  meshard::sync();
  check(name, count, first, Usage::now());
}

void steps(std::int64_t count) {
  Mesh mesh({{"x", kDevices}});
  auto step = jit([](Tensor x, Tensor y) { return x * 0.5f + y; }, {.donate = {0}});
  Tensor y = mark_sharding(ones({kDevices, 4}), mesh, P("x")), x = y * 2;
  repeated("steps", count, 100, [&](std::int64_t) { x = step(x, y); });
}

// Every number makes a different program; half of them are compiled by jit, half lazily.
void programs(std::int64_t count) {
  Mesh mesh({{"x", 2}});
  Tensor x = mark_sharding(ones({2}), mesh, P("x"));
  // The caches have to be full before entries are dropped.
  repeated("programs", count, 1100, [&](std::int64_t i) {
    if (i % 2 == 0) {
      auto number = static_cast<float>(i);
      sync(jit([number](Tensor t) { return t + number; })(x));
    } else {  // a number by itself would be an argument of one lazy program
      sync(x * sum(arange(i)));
    }
  });
}

void transfers(std::int64_t count) {
  Mesh left({{"x", 4}}, {0, 1, 2, 3}), right({{"x", 4}}, {4, 5, 6, 7});
  Tensor x = mark_sharding(ones({64, 4}), left, P("x"));
  repeated("transfers", count, 100, [&](std::int64_t) {
    x = transfer(transfer(x, right, P(none, "x")), left, P("x"));
    if (x.to_host().shape() != Shape{64, 4}) std::abort();
  });
}

void checkpoints(std::int64_t count) {
  Mesh mesh({{"x", kDevices}});
  std::string file =
      (std::filesystem::temp_directory_path() / cat("meshard-soak-", ::getpid(), ".safetensors"))
          .string();
  Tensor x = mark_sharding(ones({64, 4}), mesh, P("x"));
  repeated("checkpoints", count, 50, [&](std::int64_t) {
    io::save(file, {{"x", x}}).value();
    x = mark_sharding(io::load(file).value().at("x"), mesh, P("x"));
    sync(x);
  });
  std::filesystem::remove(file);
}

// Until `stop`: calls, transfers and drops on submeshes that overlap those of other threads.
void work_of_a_thread(unsigned seed, const std::function<bool()>& stop) {
  std::mt19937 random(seed);
  auto draw = [&](std::int64_t below) { return static_cast<std::int64_t>(random() % below); };
  std::vector<Tensor> values;
  auto step = jit([](Tensor x) { return sum(x * 0.5f, 0, true) + x; });
  while (!stop()) {
    std::int64_t first = draw(kDevices - 1), size = 1 + draw(2);
    std::vector<std::int64_t> devices;
    for (std::int64_t i = 0; i < size; ++i) devices.push_back(first + i);
    Mesh mesh({{"x", size}}, devices);
    if (values.empty() || draw(4) == 0) {
      values.push_back(mark_sharding(ones({4, 4}), mesh, P("x")));
    } else {
      Tensor& value =
          values[static_cast<std::size_t>(draw(static_cast<std::int64_t>(values.size())))];
      value = draw(2) == 0 ? step(value) : transfer(value, mesh, P(none, "x"));
    }
    if (values.size() > 8) values.erase(values.begin());
    if (draw(16) == 0) (void)values.back().to_host();
  }
}

void threads(double seconds) {
  if (seconds <= 0) return;
  auto run = [](double time) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time);
    std::vector<std::thread> all;
    for (unsigned seed = 0; seed < 8; ++seed)
      all.emplace_back(work_of_a_thread, seed,
                       [end] { return std::chrono::steady_clock::now() > end; });
    for (std::thread& each : all) each.join();
    meshard::sync();
  };
  run(std::max(seconds / 100, 2.0));  // compiles all programs
  Usage first = Usage::now();
  run(seconds);
  check("seconds", static_cast<std::int64_t>(seconds), first, Usage::now());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    (void)runtime_client();
  } catch (const Error& error) {
    std::printf("no plugin: %s\n", error.what());
    return 77;
  }
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::int64_t count = equals == std::string::npos ? 0 : std::atoll(word.c_str() + equals + 1);
    if (name == "steps")
      steps(count);
    else if (name == "programs")
      programs(count);
    else if (name == "transfers")
      transfers(count);
    else if (name == "checkpoints")
      checkpoints(count);
    else if (name == "seconds")
      threads(static_cast<double>(count));
    else
      return std::fprintf(stderr, "soak: %s?\n", word.c_str()), 2;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
