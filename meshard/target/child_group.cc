#include "meshard/target/child_group.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

enum class Marked { kYes, kNo, kUnknown };

// The environment is briefly unreadable during exec, and always for a zombie.
Marked is_marked(pid_t process, std::string_view mark) {
  std::ifstream file(cat("/proc/", process, "/environ"), std::ios::binary);
  std::string variables(std::istreambuf_iterator<char>(file), {});
  if (variables.empty()) return Marked::kUnknown;
  std::string_view rest = variables;
  while (!rest.empty()) {
    std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable == mark) return Marked::kYes;
    rest.remove_prefix(std::min(variable.size() + 1, rest.size()));
  }
  return Marked::kNo;
}

struct Round {
  int ended = 0;
  bool again = false;
};

// The pid may be reused between the check and the signal; an open pidfd cannot.
void end_if_marked(pid_t process, pid_t group, std::string_view mark, Round& round) {
  int open = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (open < 0 && errno != ENOSYS) return;
  Marked marked = ::getpgid(process) == group ? is_marked(process, mark) : Marked::kNo;
  if (marked == Marked::kYes) {
    bool ended = open >= 0 ? ::syscall(SYS_pidfd_send_signal, open, SIGKILL, nullptr, 0) == 0
                           : ::kill(process, SIGKILL) == 0;
    round.ended += ended;
  }
  round.again = round.again || marked != Marked::kNo;
  if (open >= 0) ::close(open);
}

Round end_marked_once(pid_t group, std::string_view mark) {
  Round round;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return round;
  while (const dirent* entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    pid_t process = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (error != std::errc() || end != name.data() + name.size() || process <= 1) continue;
    if (::getpgid(process) == group) end_if_marked(process, group, mark, round);
  }
  ::closedir(folder);
  return round;
}

}  // namespace

std::string child_mark() {
  static std::atomic<int> count = 0;
  auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return cat("MESHARD_CHILD=", ::getpid(), "-", now, "-", count++);
}

int end_marked_processes(pid_t group, std::string_view mark) {
  int ended = 0;
  // Processes started during a round are found in the next one.
  for (int tries = 0; tries < 100; ++tries) {
    Round round = end_marked_once(group, mark);
    ended += round.ended;
    if (!round.again) break;
    ::usleep(1000);
  }
  return ended;
}

}  // namespace meshard
