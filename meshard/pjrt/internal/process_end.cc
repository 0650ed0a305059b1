// Tested in tests/ends/ends_test.py.
#include "meshard/pjrt/internal/process_end.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "meshard/base/cat.h"

namespace meshard::pjrt::internal {
namespace {

constinit std::atomic<pid_t> ending_thread = 0;  // 0: the process is not ending
constinit thread_local bool never_held = false;

// A main thread that called pthread_exit is a zombie until all other threads have ended.
bool main_thread_is_gone() {
  std::ifstream file(cat("/proc/self/task/", ::getpid(), "/stat"));
  std::string text;
  std::getline(file, text);
  std::size_t name_ends = text.rfind(')');  // the name may contain anything
  return name_ends != std::string::npos && text.size() > name_ends + 2 &&
         text[name_ends + 2] == 'Z';
}

}  // namespace

void hold_other_threads() {
  ending_thread = ::gettid();
  while (PluginWork::inside_ > 0) {
    if (main_thread_is_gone()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void never_hold_this_thread() { never_held = true; }

bool is_held() {
  pid_t ending = ending_thread;
  return ending != 0 && ending != ::gettid() && !never_held;
}

void stay_until_the_end() {
  while (is_held()) {
    if (main_thread_is_gone()) {
      ending_thread = 0;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace meshard::pjrt::internal
