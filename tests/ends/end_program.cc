// Exits in the way that its argument names, with programs in flight on 8 devices.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "meshard/meshard.h"
#include "meshard/pjrt/plugin_search.h"

using namespace meshard;

namespace {

// Whether the process has two platforms.
bool two_platforms = false;

Mesh all_devices() { return Mesh({{"x", 8}}); }
Mesh second_devices() { return Mesh({{"x", 4}}).with_device_type("second"); }

// Drops so many small results that the runtime destroys them in a thread of its own.
void drop_many() {
  static auto& step = *new Jit(jit([](std::vector<Tensor> all) {
    for (Tensor& each : all) each = each + 1.0f;
    return all;
  }));
  std::vector<Tensor> all(20, mark_sharding(ones({8}), all_devices(), P("x")));
  for (int i = 0; i < 5; ++i) all = step(all);
}

// Starts some slow launches, and waits for none of them.
Tensor in_flight() {
  drop_many();
  Tensor x = mark_sharding(ones({64, 64}), all_devices(), P("x"));
  auto step = jit([](Tensor t) {
    return fori_loop(
        0, 200, [](Tensor, Tensor c) { return tanh(matmul(c, c) * 0.01f); }, t);
  });
  for (int i = 0; i < 3; ++i) x = step(x);
  if (!two_platforms) return x;
  static Tensor& second = *new Tensor;
  second = mark_sharding(ones({64, 64}), second_devices(), P("x"));
  for (int i = 0; i < 3; ++i) second = step(second);
  return x;
}

// Adds another platform: another CPU plugin if there is one, otherwise the same plugin again.
void add_second_platform() {
  pjrt::PluginSearch search = pjrt::find_plugins();
  std::string first = search.first("cpu").value(), other = first;
  for (const pjrt::FoundPlugin& each : search.found)
    if (each.platform == "cpu" && each.path != first) other = each.path;
  configure_runtime({.platforms = {{.device_type = "second", .plugin = other, .cpu_devices = 4}}})
      .value();
  two_platforms = true;
}

Tensor& static_tensor() {
  static Tensor tensor;
  return tensor;
}

struct LaunchesAtTheEnd {
  ~LaunchesAtTheEnd() { (void)in_flight(); }
};

// Launches, transfers and compiles until the process ends.
void work_for_ever(Tensor x) {
  for (int i = 0;; ++i) {
    auto number = static_cast<float>(i % 50);
    x = jit([number](Tensor t) { return t * 0.5f + number; })(x);
    if (i % 7 == 0) (void)x.to_host();
    if (i % 11 == 0) x = transfer(x, Mesh({{"x", 4}}, {0, 1, 2, 3}), P("x"));
    if (!two_platforms && i % 11 == 5) x = mark_sharding(x, all_devices(), P("x"));
    if (two_platforms && i % 5 == 0) x = transfer(x, second_devices(), P("x"));
    if (two_platforms && i % 5 == 2) x = transfer(x, all_devices(), P("x"));
  }
}

void throw_deep_inside(const Tensor& x) {
  if (x.rank() == 2) throw std::runtime_error("nobody catches this");
}

int end_in_child() {
  pid_t child = fork();
  if (child == 0) {
    try {
      (void)in_flight();
    } catch (const Error& error) {
      std::exit(error.code() == ErrorCode::kFailedPrecondition ? 9 : 1);
    }
    std::exit(1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
  return WEXITSTATUS(status);
}

int end(std::string_view way) {
  if (way == "static") static_tensor() = ones({8});     // constructed first, destroyed last
  if (way == "platform-starts") two_platforms = false;  // it has not started yet
  Tensor x = in_flight();
  std::cout << "said before the end";  // not flushed here
  if (way == "return") return 3;
  if (way == "exit") std::exit(4);
  if (way == "exit-in-a-thread") {
    std::thread([] { std::exit(5); }).join();
  } else if (way == "exception") {
    std::cout << std::flush;
    throw_deep_inside(x);
  } else if (way == "static") {
    static_tensor() = x;
    return 6;
  } else if (way == "launch-in-a-destructor") {
    static LaunchesAtTheEnd later;
    return 7;
  } else if (way == "launch-in-a-handler") {
    std::atexit([] { (void)in_flight(); });
    return 8;
  } else if (way == "interrupt" || way == "terminate") {
    std::cout << std::flush;
    raise(way == "interrupt" ? SIGINT : SIGTERM);
  } else if (way == "fork") {
    std::cout << std::flush;
    return end_in_child();
  } else if (way == "detached-thread") {
    for (int i = 0; i < 3; ++i) std::thread(work_for_ever, ones({64, 64})).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return 12;
  } else if (way == "platform-starts") {
    std::thread([] { (void)runtime_client("second"); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return 14;
  } else if (way == "main-thread-first") {
    std::cout << std::flush;
    std::thread([x] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      std::exit(in_flight().to_host().type().rank() == 2 ? 13 : 1);
    }).detach();
    pthread_exit(nullptr);
  } else if (way == "quick-exit") {
    std::cout << std::flush;
    std::quick_exit(10);
  } else if (way == "exec") {
    std::cout << std::flush;
    execl("/bin/sh", "sh", "-c", "exit 11", static_cast<char*>(nullptr));
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGINT, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  if (argc == 3 && std::string_view(argv[2]) == "two-platforms")
    add_second_platform();
  else if (argc != 2)
    return 2;
  return end(argv[1]);
}
