// Tested in tools/meshard/check_launch.py.
#include "tools/meshard/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "meshard/base/cat.h"
#include "tools/meshard/output_lines.h"

namespace meshard::tool {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// For survivors to report what they know of the loss, and for processes that died together.
constexpr Milliseconds kTimeToReport{1000};
/// For output of processes that have left the group, and keep the pipes open.
constexpr Milliseconds kTimeToDrain{500};

/// What the library prints when a process ends because another one is lost.
constexpr std::string_view kReport = "[processes] process ", kReportEnds = " ends: ";

struct Child {
  pid_t pid = 0;
  bool is_running = true;
  int status = 0;             // of waitpid()
  double ended_after = 0;     // seconds
  bool was_signaled = false;  // we had sent a signal before
  OutputLines output, errors;
  std::string report = {};  // why the library ended it

  bool failed() const { return !is_running && status != 0; }
};

std::string system_error(int error) { return std::strerror(error); }

/// The signals that this process reads from a descriptor instead of being interrupted.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int each : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGTSTP}) sigaddset(&set, each);
  return set;
}

/// Blocks the watched signals as long as it exists. An ignored one stays ignored.
class SignalReader {
 public:
  SignalReader() {
    sigset_t set = watched_signals();
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    file_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalReader() {
    if (file_ >= 0) ::close(file_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  int file() const { return file_; }
  const sigset_t& before() const { return before_; }
  /// The next signal that has come; 0: none.
  int next() {
    signalfd_siginfo info;
    return ::read(file_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  int file_ = -1;
};

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close() {
    for (int* end : {&read, &write}) {
      if (*end >= 0) ::close(*end);
      *end = -1;
    }
  }
};

/// The environment of a process: this one's, with the place in the run.
class ChildEnvironment {
 public:
  ChildEnvironment(const Attempt& attempt, int rank) {
    add("MESHARD_PROCESS_ADDRESS", attempt.address);
    add("MESHARD_PROCESS_RANK", cat(rank));
    add("MESHARD_PROCESS_COUNT", cat(attempt.count));
    add("MESHARD_LAUNCH_ATTEMPT", cat(attempt.number));
    // Python would keep lines until 8 KB of them are there.
    if (std::getenv("PYTHONUNBUFFERED") == nullptr) add("PYTHONUNBUFFERED", "1");
    // A run of one process would have eight devices instead of one for each process.
    const char* devices = std::getenv("MESHARD_CPU_DEVICES");
    if (attempt.count == 1 && (devices == nullptr || *devices == '\0'))
      add("MESHARD_CPU_DEVICES", "1");
    const std::size_t own = texts_.size();
    for (char** each = environ; *each != nullptr; ++each) {
      std::string_view text(*each), name = text.substr(0, text.find('=') + 1);
      if (std::none_of(texts_.begin(), texts_.begin() + static_cast<std::ptrdiff_t>(own),
                       [&](const std::string& set) { return set.starts_with(name); }))
        texts_.emplace_back(text);
    }
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** pointers() { return pointers_.data(); }

 private:
  void add(std::string_view name, std::string_view value) {
    texts_.push_back(cat(name, "=", value));
  }
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// In the child: becomes the program, or writes the error number.
[[noreturn]] void become(char** words, char** environment, pid_t parent, const sigset_t& signals,
                         int output, int errors, int problem) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the call
  int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvpe(words[0], words, environment);
  int error = errno;
  [[maybe_unused]] ssize_t written = ::write(problem, &error, sizeof error);
  ::_exit(127);
}

class Supervisor {
 public:
  explicit Supervisor(const Attempt& attempt) : attempt_(attempt) {}
  ~Supervisor() {
    for (Child& child : children_)
      if (child.is_running) {
        ::kill(-child.pid, SIGKILL);
        ::waitpid(child.pid, nullptr, 0);
      }
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<AttemptEnd> run() {
    if (signals_.file() < 0)
      return Error(ErrorCode::kUnavailable, cat("no signal descriptor: ", system_error(errno)));
    for (int rank = 0; rank < attempt_.count; ++rank) MESHARD_RETURN_IF_ERROR(start(rank));
    while (has_running()) step(time_left(deadline_));
    const Clock::time_point end = Clock::now() + kTimeToDrain;
    while (has_open_output() && Clock::now() < end) step(time_left(end));
    for (Child& child : children_) {
      child.output.finish();
      note_report(child, child.errors.finish());
    }
    return outcome();
  }

 private:
  /// What happens at the deadline.
  enum class Next : std::uint8_t { kNothing, kTerminate, kKill };

  Result<void> start(int rank) {
    Pipe output, errors, problem;
    const bool is_open = output.open() && errors.open() && problem.open();
    std::vector<std::string> texts = attempt_.command;
    std::vector<char*> words;
    for (std::string& text : texts) words.push_back(text.data());
    words.push_back(nullptr);
    ChildEnvironment environment(attempt_, rank);
    const pid_t parent = ::getpid(), pid = is_open ? ::fork() : -1;
    int error = errno;
    if (pid == 0)
      become(words.data(), environment.pointers(), parent, signals_.before(), output.write,
             errors.write, problem.write);
    if (pid > 0) {
      ::setpgid(pid, pid);  // whichever of the two is first
      for (int* end : {&output.write, &errors.write, &problem.write}) {
        ::close(*end);
        *end = -1;
      }
      const std::string prefix = cat("[", rank, "] ");
      children_.push_back({.pid = pid,
                           .output = OutputLines(std::exchange(output.read, -1), 1, prefix),
                           .errors = OutputLines(std::exchange(errors.read, -1), 2, prefix)});
      ssize_t count = 0;
      do count = ::read(problem.read, &error, sizeof error);
      while (count < 0 && errno == EINTR);
      if (count != sizeof error) error = 0;
    }
    for (Pipe* each : {&output, &errors, &problem}) each->close();
    if (pid < 0)
      return Error(ErrorCode::kUnavailable,
                   cat("cannot start process ", rank, ": ", system_error(error)));
    if (error == 0) return {};
    return Error(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kPermissionDenied,
                 cat("cannot start ", attempt_.command[0], ": ", system_error(error)));
  }

  bool has_running() const {
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.is_running; });
  }
  bool has_open_output() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) {
      return child.output.is_open() || child.errors.is_open();
    });
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  /// For poll(): -1 without a deadline.
  static int time_left(const std::optional<Clock::time_point>& deadline) {
    if (!deadline) return -1;
    auto left = std::chrono::ceil<Milliseconds>(*deadline - Clock::now());
    return static_cast<int>(std::max<Milliseconds::rep>(left.count(), 0));
  }

  /// Waits for output, a signal or the end of the time, and does what follows.
  void step(int limit) {
    std::vector<pollfd> files = {{signals_.file(), POLLIN, 0}};
    std::vector<OutputLines*> outputs;
    for (Child& child : children_)
      for (OutputLines* lines : {&child.output, &child.errors})
        if (lines->is_open()) {
          files.push_back({lines->file(), POLLIN, 0});
          outputs.push_back(lines);
        }
    if (::poll(files.data(), files.size(), limit) > 0) {
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (files[i + 1].revents != 0) copy(*outputs[i]);
      for (int signal; (signal = signals_.next()) != 0;) receive(signal);
      reap();
    }
    if (deadline_ && Clock::now() >= *deadline_) act();
  }

  void copy(OutputLines& lines) {
    std::vector<std::string> text = lines.copy();
    for (Child& child : children_)
      if (&child.errors == &lines) note_report(child, text);
  }

  static void note_report(Child& child, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      const std::size_t ends = line.find(kReportEnds);
      if (child.report.empty() && line.starts_with(kReport) && ends != std::string::npos)
        child.report = line.substr(ends + kReportEnds.size());
    }
  }

  void reap() {
    const double now = seconds();
    for (Child& child : children_) {
      siginfo_t info{};
      if (!child.is_running ||
          ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid != child.pid)
        continue;
      // What it has started ends with it. It still has its number, so no other group has.
      ::kill(-child.pid, SIGKILL);
      ::waitpid(child.pid, &child.status, 0);
      child.is_running = false;
      child.ended_after = now;
      child.was_signaled = is_signaled_;
      if (child.failed() && next_ == Next::kNothing && signal_ == 0)
        plan(Next::kTerminate, kTimeToReport);
    }
  }

  void receive(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGTSTP) {
      signal_all(SIGSTOP);
      ::raise(SIGSTOP);
      signal_all(SIGCONT);
      return;
    }
    if (signal_ != 0) return signal_all(SIGKILL);
    signal_ = signal;
    signal_all(signal);
    plan(Next::kKill, attempt_.grace);
  }

  void plan(Next next, Milliseconds after) {
    next_ = next;
    deadline_ = Clock::now() + after;
  }

  void act() {
    signal_all(next_ == Next::kKill ? SIGKILL : SIGTERM);
    if (next_ == Next::kTerminate) return plan(Next::kKill, attempt_.grace);
    deadline_.reset();
  }

  void signal_all(int signal) {
    for (const Child& child : children_)
      if (child.is_running) {
        ::kill(-child.pid, signal);
        if (signal != SIGSTOP && signal != SIGKILL) ::kill(-child.pid, SIGCONT);
      }
    if (signal != SIGSTOP && signal != SIGCONT) is_signaled_ = true;
  }

  std::string text_of(const Child& child) const {
    const long rank = &child - children_.data();
    std::string how = WIFSIGNALED(child.status)
                          ? cat("was killed by signal ", WTERMSIG(child.status), " (",
                                ::strsignal(WTERMSIG(child.status)), ")")
                          : cat("ended with status ", WEXITSTATUS(child.status));
    char time[40];
    std::snprintf(time, sizeof time, "%.1f s", child.ended_after);
    return cat("process ", rank, " of ", attempt_.count, " (pid ", child.pid, ") ", how, ", ", time,
               " after its start");
  }

  /// The process that the library of another one has named, and its words. The name is the rank
  /// after `process `, as in `process 1 (pid 4711 on alpha) died`.
  void blame_reported(AttemptEnd& end, const Child& child) const {
    constexpr std::string_view kName = "process ";
    end.what = child.report;
    end.status = 1;
    int rank = -1;
    if (end.what.starts_with(kName)) rank = std::atoi(end.what.c_str() + kName.size());
    end.lost.push_back(
        rank >= 0 && rank < attempt_.count ? rank : static_cast<int>(&child - children_.data()));
  }

  AttemptEnd outcome() const {
    AttemptEnd end;
    end.signal = signal_;
    if (signal_ != 0) {
      end.status = 128 + signal_;
      return end;
    }
    // Who failed by itself: before any process had a signal from us, and not because of another
    // one.
    std::vector<const Child*> failed;
    const Child* reported = nullptr;
    for (const Child& child : children_) {
      if (!child.failed() || child.was_signaled) continue;
      if (child.report.empty())
        failed.push_back(&child);
      else if (reported == nullptr || child.ended_after < reported->ended_after)
        reported = &child;
    }
    std::stable_sort(failed.begin(), failed.end(), [](const Child* a, const Child* b) {
      return a->ended_after < b->ended_after;
    });
    if (failed.empty() && reported != nullptr) blame_reported(end, *reported);
    for (const Child* child : failed) {
      const bool is_first = end.lost.empty();
      // A process that the first one's end has brought down is not another loss.
      if (!is_first && child->ended_after > failed[0]->ended_after) break;
      end.lost.push_back(static_cast<int>(child - children_.data()));
      end.what += cat(is_first ? "" : "; ", text_of(*child));
      if (is_first)
        end.status =
            WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
    }
    return end;
  }

  const Attempt& attempt_;
  SignalReader signals_;
  std::vector<Child> children_;
  const Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> deadline_;
  Next next_ = Next::kNothing;
  bool is_signaled_ = false;
  int signal_ = 0;
};

}  // namespace

Result<AttemptEnd> supervise(const Attempt& attempt) { return Supervisor(attempt).run(); }

}  // namespace meshard::tool
