// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compile_workers.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/whole_file.h"

extern char** environ;

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

namespace fs = std::filesystem;

constexpr const char* kCompileProgram = "meshard-compile";

void add_around(const fs::path& file, std::vector<fs::path>& places) {
  fs::path folder = file.parent_path();
  places.push_back(folder / kCompileProgram);
  places.push_back(folder / ".." / "libexec" / "meshard" / kCompileProgram);
  places.push_back(folder / ".." / "bin" / kCompileProgram);
}

std::vector<fs::path> compile_program_places() {
  std::vector<fs::path> places;
  std::error_code ignored;
  add_around(fs::read_symlink("/proc/self/exe", ignored), places);
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_compile_program), &info) != 0 &&
      info.dli_fname != nullptr)
    add_around(fs::absolute(info.dli_fname, ignored), places);
#ifdef MESHARD_LIBEXEC_FOLDER
  places.push_back(fs::path(MESHARD_LIBEXEC_FOLDER) / kCompileProgram);
#endif
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) places.push_back(fs::path(path.substr(at, end - at)) / kCompileProgram);
    at = end + 1;
  }
  return places;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

// Named, because ChildProgram::State has members of these types.
namespace child_program {

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
  int release() { return std::exchange(file_, -1); }

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

// Lines that are not passed on yet, and the begun one.
class ChildLines {
 public:
  void add(std::string_view bytes) { rest_.append(bytes); }
  // Passes lines on; true if one of them asked for a pause.
  bool pass(const std::function<bool(std::string_view)>& on_line) {
    constexpr std::size_t kLongestLine = 1 << 16;
    bool paused = false;
    std::size_t at = 0;
    for (std::size_t end = 0; !paused && (end = rest_.find('\n', at)) != std::string::npos;
         at = end + 1)
      paused = on_line && on_line(std::string_view(rest_).substr(at, end - at));
    rest_.erase(0, at);
    if (!paused && rest_.size() > kLongestLine) rest_.clear();
    return paused;
  }

 private:
  std::string rest_;
};

}  // namespace child_program

using namespace child_program;

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

struct ChildProgram::State {
  PipeEnd input, output, errors;
  std::optional<ChildGroup> group;
  ChildLines lines;
  BoundedText log;
  bool timed_out = false;

  // Waits for output, and takes it.
  bool read_ready(int wait) {
    pollfd files[2] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
    if (::poll(files, 2, wait) <= 0) return false;
    if (files[0].revents != 0 && !drain(output.get(), [&](auto text) { lines.add(text); }))
      output.close();
    if (files[1].revents != 0 && !drain(errors.get(), [&](auto text) { log.append(text); }))
      errors.close();
    return true;
  }
  bool is_open() const { return output.get() >= 0 || errors.get() >= 0; }
};

ChildProgram::ChildProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChildProgram::ChildProgram(ChildProgram&&) noexcept = default;
ChildProgram& ChildProgram::operator=(ChildProgram&&) noexcept = default;
ChildProgram::~ChildProgram() = default;

Result<ChildProgram> ChildProgram::start(const std::vector<std::string>& words) {
  const std::string& program = words.at(0);
  auto state = std::make_unique<State>();
  ChildPipe output, errors;
  // A socket, because writing to one whose reader has ended need not raise SIGPIPE.
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return cannot_start(program, errno);
  state->input.set(sockets[0]);
  PipeEnd input(sockets[1]);
  if (!output.open() || !errors.open()) return cannot_start(program, errno);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::string mark = child_mark();
  std::vector<char*> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.push_back(*variable);
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  SpawnSetting setting(input.get(), output.write.get(), errors.write.get());
  pid_t child = 0;
  int failed = ::posix_spawn(&child, program.c_str(), &setting.files, &setting.attributes,
                             arguments.data(), variables.data());
  if (failed != 0) return cannot_start(program, failed);
  state->group.emplace(child, mark);
  state->output.set(output.read.release());
  state->errors.set(errors.read.release());
  return ChildProgram(std::move(state));
}

Result<void> ChildProgram::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(state_->input.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return Error(ErrorCode::kUnavailable, cat("[process] cannot write to the standard input of "
                                                "a child program: ",
                                                std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

ChildPause ChildProgram::watch(const ChildWatch& options) {
  State& state = *state_;
  auto deadline = ChildClock::now() + options.time_limit;
  auto next_tick = ChildClock::now();
  while (true) {
    if (state.lines.pass(options.on_line)) return ChildPause::kLine;
    state.read_ready(kTickMilliseconds);
    bool ended = state.group->state() != ChildGroup::State::kRuns;
    // Reads the remaining output, without waiting for grandchildren that hold the pipes open.
    for (int round = 0; ended && round < 64 && state.is_open(); ++round)
      if (!state.read_ready(0)) break;
    if (state.lines.pass(options.on_line)) return ChildPause::kLine;
    if (ended) return ChildPause::kEnded;
    if (ChildClock::now() > deadline) {
      state.timed_out = true;
      return ChildPause::kTimeLimit;
    }
    if (!state.is_open()) ::usleep(1000 * kTickMilliseconds / 10);
    if (options.on_tick && ChildClock::now() >= next_tick) {
      options.on_tick();
      next_tick = ChildClock::now() + std::chrono::milliseconds(kTickMilliseconds);
    }
  }
}

std::string ChildProgram::take_log() {
  while (state_->errors.get() >= 0 && state_->read_ready(0)) {
  }
  return std::exchange(state_->log, BoundedText()).text();
}

ChildEnd ChildProgram::end() {
  ChildEnd end;
  end.timed_out = state_->timed_out;
  std::optional<int> status = state_->group->end();
  end.status_lost = !end.timed_out && !status.has_value();
  if (!end.timed_out && status.has_value()) {
    if (WIFEXITED(*status)) end.exit_code = WEXITSTATUS(*status);
    if (WIFSIGNALED(*status)) end.signal = WTERMSIG(*status);
  }
  end.log = state_->log.text();
  return end;
}

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

namespace fs = std::filesystem;

// The folder outlives the process, which writes into it.
struct CompileWorkers::Worker {
  Worker(std::string the_program, std::string the_plugin, TemporaryFolder the_folder,
         ChildProgram the_child)
      : program(std::move(the_program)),
        plugin(std::move(the_plugin)),
        folder(std::move(the_folder)),
        child(std::move(the_child)) {}

  std::string program, plugin;
  TemporaryFolder folder;
  ChildProgram child;
  std::size_t jobs = 0;

  std::string file(std::string_view what) const { return cat(folder.path(), "/", what, "-", jobs); }

  // The answer to the job that was written last; none if the process ended or was stopped.
  std::optional<std::string> answer(const WorkerWatch& watch) {
    // A program that has ended already is noticed below.
    (void)child.write(cat(jobs, "\n"));
    ChildWatch lines{.time_limit = watch.time_limit, .on_line = {}, .on_tick = watch.on_tick};
    lines.on_line = [&](std::string_view line) {
      constexpr std::string_view kStep = "step: ";
      if (line.starts_with(kStep) && watch.on_step) watch.on_step(line.substr(kStep.size()));
      return line == "done";
    };
    if (child.watch(lines) == ChildPause::kTimeLimit) return std::nullopt;
    // It is written atomically, so that one of a process that has ended is complete, too.
    Result<std::string> bytes = read_whole_file(file("answer"));
    return bytes.ok() ? std::optional(*std::move(bytes)) : std::nullopt;
  }

  void remove_files() {
    std::error_code ignored;
    for (std::string_view what : {"request", "answer", "dump"}) fs::remove_all(file(what), ignored);
  }
};

struct CompileWorkers::Pool {
  std::size_t most_jobs;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Worker>> idle;
  std::size_t started = 0;

  std::unique_ptr<Worker> take(const std::string& program, const std::string& plugin) {
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(
        idle, [&](const auto& one) { return one->program == program && one->plugin == plugin; });
    if (found == idle.end()) return nullptr;
    std::unique_ptr<Worker> worker = std::move(*found);
    idle.erase(found);
    return worker;
  }
};

CompileWorkers::CompileWorkers(std::size_t most_jobs) : pool_(std::make_unique<Pool>()) {
  pool_->most_jobs = std::max<std::size_t>(most_jobs, 1);
}
CompileWorkers::~CompileWorkers() = default;

std::size_t CompileWorkers::started() const {
  std::lock_guard lock(pool_->mutex);
  return pool_->started;
}

Result<std::unique_ptr<CompileWorkers::Worker>> CompileWorkers::start(const std::string& plugin) {
  MESHARD_ASSIGN_OR_RETURN(std::string program, find_compile_program());
  if (std::unique_ptr<Worker> idle = pool_->take(program, plugin)) return idle;
  MESHARD_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  MESHARD_ASSIGN_OR_RETURN(ChildProgram child, ChildProgram::start({program, folder.path()}));
  std::lock_guard lock(pool_->mutex);
  ++pool_->started;
  return std::make_unique<Worker>(std::move(program), plugin, std::move(folder), std::move(child));
}

Result<WorkerAnswer> CompileWorkers::run(CompileJob job, const WorkerWatch& watch) {
  while (true) {
    // If this call throws, the process ends with its owner.
    MESHARD_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, start(job.plugin));
    ++worker->jobs;
    job.dump_folder = worker->file("dump");
    MESHARD_RETURN_IF_ERROR(write_whole_file(worker->file("request"), job.serialize()));
    WorkerAnswer answer;
    answer.bytes = worker->answer(watch);
    if (answer.bytes) {
      answer.log = worker->child.take_log();
      worker->remove_files();
      std::lock_guard lock(pool_->mutex);
      if (worker->jobs < pool_->most_jobs) pool_->idle.push_back(std::move(worker));
      return answer;
    }
    answer.end = worker->child.end();
    answer.log = answer.end.log;
    if (worker->jobs == 1 || answer.end.timed_out) return answer;
  }
}

Result<std::string> find_compile_program() {
  MESHARD_RETURN_IF_ERROR(check_environment());
  if (const char* named = std::getenv("MESHARD_COMPILE"); named != nullptr && *named != '\0') {
    if (is_program(named)) return std::string(named);
    return Error(ErrorCode::kNotFound,
                 cat("[compile] MESHARD_COMPILE=", named, " is not an executable file"));
  }
  std::string looked;
  for (const fs::path& place : compile_program_places()) {
    if (is_program(place)) return place.lexically_normal().string();
    looked += cat("\n  ", place.lexically_normal().string());
  }
  return Error(
      ErrorCode::kNotFound,
      cat("[compile] cannot find the program meshard-compile, which is part of meshard; set "
          "MESHARD_COMPILE to its path. Searched",
          looked));
}

}  // namespace meshard
