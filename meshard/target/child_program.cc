#include "meshard/target/child_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/target/child_group.h"

extern char** environ;

namespace meshard {
namespace {

using ChildClock = std::chrono::steady_clock;
constexpr int kTickMilliseconds = 100;

class PipeEnd {
 public:
  explicit PipeEnd(int file = -1) : file_(file) {}
  PipeEnd(const PipeEnd&) = delete;
  PipeEnd& operator=(const PipeEnd&) = delete;
  ~PipeEnd() { close(); }
  void set(int file) { file_ = file; }
  void close() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  int get() const { return file_; }

 private:
  int file_;
};

struct ChildPipe {
  PipeEnd read, write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.set(ends[0]);
    write.set(ends[1]);
    return true;
  }
};

// Kills and reaps the whole process group.
class ChildGroup {
 public:
  ChildGroup(pid_t child, std::string mark) : child_(child), mark_(std::move(mark)) {}
  ChildGroup(const ChildGroup&) = delete;
  ~ChildGroup() {
    if (child_ > 0) end();
  }
  enum class State { kRuns, kEnded, kReapedByOthers };
  // Does not reap: a child that has ended stays a zombie, so that its pid is not reused.
  State state() const {
    siginfo_t info{};
    int done = 0;
    do done = ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT);
    while (done != 0 && errno == EINTR);
    if (done != 0) return State::kReapedByOthers;
    return info.si_pid == child_ ? State::kEnded : State::kRuns;
  }
  // The status from waitpid; none if the child was reaped elsewhere.
  std::optional<int> end() {
    State found = state();
    pid_t child = std::exchange(child_, 0);
    if (found == State::kReapedByOthers) {
      end_marked_processes(child, mark_);
      return std::nullopt;
    }
    ::kill(-child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
      if (errno != EINTR) return std::nullopt;
    return status;
  }

 private:
  pid_t child_;
  std::string mark_;
};

class SpawnSetting {
 public:
  SpawnSetting(int input, int output, int errors) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, 0);
    posix_spawn_file_actions_adddup2(&files, output, 1);
    posix_spawn_file_actions_adddup2(&files, errors, 2);
    posix_spawnattr_init(&attributes);
    sigset_t none, standard;
    sigemptyset(&none);
    sigfillset(&standard);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnSetting(const SpawnSetting&) = delete;
  ~SpawnSetting() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

Error cannot_start(const std::string& program, int number) {
  return Error(ErrorCode::kUnavailable,
               cat("[process] cannot start ", program, ": ", std::strerror(number)));
}

// Reads the available bytes. False at end of file.
bool drain(int file, const std::function<void(std::string_view)>& take) {
  char bytes[1 << 16];
  ssize_t count = ::read(file, bytes, sizeof bytes);
  if (count > 0) take(std::string_view(bytes, static_cast<std::size_t>(count)));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

class ChildLines {
 public:
  explicit ChildLines(const std::function<void(std::string_view)>& on_line) : on_line_(on_line) {}
  void take(std::string_view bytes) {
    constexpr std::size_t kLongestLine = 1 << 16;
    rest_.append(bytes);
    std::size_t at = 0;
    for (std::size_t end = 0; (end = rest_.find('\n', at)) != std::string::npos; at = end + 1)
      if (on_line_) on_line_(std::string_view(rest_).substr(at, end - at));
    rest_.erase(0, at);
    if (rest_.size() > kLongestLine) rest_.clear();
  }

 private:
  const std::function<void(std::string_view)>& on_line_;
  std::string rest_;
};

// Runs until the child ends or the time limit expires; true if it expired.
bool watch_child(const ChildProgramOptions& options, const ChildGroup& group, int output,
                 int errors, BoundedText& log) {
  ChildLines lines(options.on_line);
  auto deadline = ChildClock::now() + options.time_limit;
  pollfd files[2] = {{output, POLLIN, 0}, {errors, POLLIN, 0}};
  auto read_ready = [&](int wait) {
    if (::poll(files, 2, wait) <= 0) return false;
    if (files[0].revents != 0 && !drain(output, [&](auto text) { lines.take(text); }))
      files[0].fd = -1;
    if (files[1].revents != 0 && !drain(errors, [&](auto text) { log.append(text); }))
      files[1].fd = -1;
    return true;
  };
  auto next_tick = ChildClock::now();
  while (true) {
    read_ready(kTickMilliseconds);
    bool ended = group.state() != ChildGroup::State::kRuns;
    // Reads the remaining output, without waiting for grandchildren that hold the pipes open.
    for (int round = 0; ended && round < 64 && (files[0].fd >= 0 || files[1].fd >= 0); ++round)
      if (!read_ready(0)) break;
    if (ended) return false;
    if (ChildClock::now() > deadline) return true;
    if (files[0].fd < 0 && files[1].fd < 0) ::usleep(1000 * kTickMilliseconds / 10);
    if (options.on_tick && ChildClock::now() >= next_tick) {
      options.on_tick();
      next_tick = ChildClock::now() + std::chrono::milliseconds(kTickMilliseconds);
    }
  }
}

}  // namespace

void BoundedText::append(std::string_view bytes) {
  std::size_t room = std::min(most_head_ - head_.size(), bytes.size());
  head_.append(bytes.substr(0, room));
  tail_.append(bytes.substr(room));
  if (tail_.size() > 2 * most_tail_) {
    left_out_ += tail_.size() - most_tail_;
    tail_.erase(0, tail_.size() - most_tail_);
  }
}

std::string BoundedText::text() const {
  if (left_out_ == 0) return head_ + tail_;
  return cat(head_, "\n... ", left_out_, " bytes omitted ...\n", tail_);
}

Result<ChildEnd> run_child_program(const ChildProgramOptions& options) {
  const std::string& program = options.arguments.at(0);
  ChildPipe input, output, errors;
  if (!input.open() || !output.open() || !errors.open()) return cannot_start(program, errno);
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::string mark = child_mark();
  std::vector<char*> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.push_back(*variable);
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  SpawnSetting setting(input.read.get(), output.write.get(), errors.write.get());
  pid_t child = 0;
  int failed = ::posix_spawn(&child, program.c_str(), &setting.files, &setting.attributes,
                             arguments.data(), variables.data());
  if (failed != 0) return cannot_start(program, failed);
  ChildGroup group(child, mark);
  input.read.close();
  output.write.close();
  errors.write.close();

  BoundedText log;
  ChildEnd end;
  end.timed_out = watch_child(options, group, output.read.get(), errors.read.get(), log);
  std::optional<int> status = group.end();
  end.status_lost = !end.timed_out && !status.has_value();
  if (!end.timed_out && status.has_value()) {
    if (WIFEXITED(*status)) end.exit_code = WEXITSTATUS(*status);
    if (WIFSIGNALED(*status)) end.signal = WTERMSIG(*status);
  }
  end.log = log.text();
  return end;
}

}  // namespace meshard
