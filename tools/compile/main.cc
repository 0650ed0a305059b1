// meshard-compile FOLDER: compiles in a process of its own (meshard/target/compile_workers.h).
//
// Compilers for absent hardware may crash or never return. For each line N of standard input, this
// program runs the request FOLDER/request-N, writes FOLDER/answer-N, and prints `done`. Before, it
// prints a line `step: ...` for each step; the compiler's messages are on standard error. Standard
// input is closed when the starter has ended: then this process removes FOLDER, which is the
// starter's temporary folder, and ends its process group.
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/target/compile_job.h"

namespace {

using meshard::cat;
namespace fs = std::filesystem;

// Sets the variables that plugins read when they are loaded. This program does not use hardware, so
// a machine with accelerators is treated like one without.
void set_environment(const std::string& folder) {
  ::setenv("TPU_SKIP_MDS_QUERY", "1", 1);          // otherwise libtpu waits for a metadata server
  ::setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 1);  // describing hardware needs no lock on it
  ::setenv("TPU_WORKER_HOSTNAMES", "localhost", 1);
  ::setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4", 1);  // supports topologies of every generation
  ::setenv("TPU_LOG_DIR", "disabled", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  // Warnings report shardings that the partitioner could implement only by replication.
  ::setenv("TF_CPP_MIN_LOG_LEVEL", "1", 1);
  ::setenv("TPU_STDERR_LOG_LEVEL", "1", 1);
  ::setenv("TPU_MIN_LOG_LEVEL", "1", 1);
  ::setenv("TMPDIR", folder.c_str(), 1);  // the GPU's assembler leaves files when it is killed
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

// Kills a process group, and then removes its folder. While one of the processes runs, it may write
// files again that were removed.
void end_and_remove(pid_t group, const std::string& folder) {
  ::kill(-group, SIGKILL);
  // Their new parent reaps them; zombies cannot write.
  for (int turn = 0; turn < 200 && ::kill(-group, 0) == 0; ++turn) ::usleep(1000);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

// Starts this program again in a new process group, to call end_and_remove().
void start_remover(const std::string& folder) {
  std::string group = std::to_string(::getpgrp());
  std::string words[] = {"meshard-compile", "--end", group, folder};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t remover = 0;
  int failed = ::posix_spawn(&remover, "/proc/self/exe", nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  ::kill(0, SIGKILL);
}

// Lines of standard input that wait for the compiler.
class Lines {
 public:
  void add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    any_.notify_one();
  }
  std::string next() {
    std::unique_lock lock(mutex_);
    any_.wait(lock, [&] { return !lines_.empty(); });
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  std::mutex mutex_;
  std::condition_variable any_;
  std::deque<std::string> lines_;
};

// Reads standard input to its end, also while a module compiles, then ends the process.
void read_until_starter_ends(Lines& lines, const std::string& folder) {
  std::string line;
  char byte;
  while (true) {
    ssize_t count = ::read(0, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (byte != '\n') {
      line.push_back(byte);
    } else {
      lines.add(std::exchange(line, {}));
    }
  }
  // The process may end only its own group.
  if (::getpgrp() == ::getpid()) return start_remover(folder);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  ::_exit(0);
}

// Runs a request and writes its answer. False if the answer cannot be written.
bool answer_request(const std::string& request, const std::string& answer) {
  auto bytes = meshard::read_whole_file(request);
  meshard::Result<meshard::Compiled> made =
      meshard::Error(meshard::ErrorCode::kUnknown, "no request was read");
  if (!bytes.ok()) {
    made = bytes.error();
  } else if (auto job = meshard::CompileJob::deserialize(*bytes); !job.ok()) {
    made = job.error();
  } else {
    made = meshard::run_compile_job(*job, [](std::string_view step) {
      std::printf("step: %.*s\n", static_cast<int>(step.size()), step.data());
      std::fflush(stdout);
    });
  }
  auto written = meshard::write_whole_file(answer, meshard::serialize_answer(made));
  if (!written.ok()) std::fprintf(stderr, "meshard-compile: %s\n", written.error().what());
  std::fflush(stderr);
  return written.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--end") {
    if (pid_t group = std::atoi(argv[2]); group > 1) end_and_remove(group, argv[3]);
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: meshard-compile FOLDER\n"
                 "Started by meshard's compile_for(), which writes requests to standard input; "
                 "FOLDER is temporary and removed with its contents.\n");
    return 2;
  }
  std::string folder = argv[1];
  // An unread step must not end this process before it removes FOLDER.
  ::signal(SIGPIPE, SIG_IGN);
  set_environment(folder);
  // Never freed, because a thread uses it until the process ends.
  Lines& lines = *new Lines;
  std::thread([&lines, folder] { read_until_starter_ends(lines, folder); }).detach();
  while (true) {
    std::string number = lines.next();
    // Ends without waiting for a plugin's threads or static objects.
    if (!answer_request(cat(folder, "/request-", number), cat(folder, "/answer-", number)))
      ::_exit(1);
    std::printf("done\n");
    std::fflush(stdout);
  }
}
