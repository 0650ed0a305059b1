#include "tools/meshard/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "meshard/base/cat.h"

namespace meshard::tool {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    ssize_t written = ::write(file, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

// Returns the last bytes of a file, and closes it.
std::string end_of(std::FILE* file) {
  constexpr long kMost = 4000;
  std::fseek(file, 0, SEEK_END);
  long size = std::ftell(file), begin = std::max(0L, size - kMost);
  std::fseek(file, begin, SEEK_SET);
  std::string text(static_cast<std::size_t>(std::max(0L, size - begin)), '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace

ChildOutcome run_in_child(const std::function<int(std::string&)>& work, double seconds) {
  ChildOutcome outcome;
  int ends[2];
  if (::pipe(ends) != 0) {
    outcome.failure = "cannot make a pipe";
    return outcome;
  }
  std::FILE* log = std::tmpfile();  // without one, standard error is not redirected
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) {
    outcome.failure = "cannot start a process";
    return outcome;
  }
  if (child == 0) {
    ::close(ends[0]);
    if (log != nullptr) ::dup2(::fileno(log), STDERR_FILENO);
    std::string output;
    int code = work(output);
    write_all(ends[1], output);
    ::_exit(code);  // does not wait for a plugin's threads or static objects
  }
  ::close(ends[1]);
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(seconds));
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{ends[0], POLLIN, 0};
    char bytes[4096];
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      outcome.failure = cat("did not answer within ", seconds, " s");
      ::kill(child, SIGKILL);
      break;
    }
    ssize_t count = ::read(ends[0], bytes, sizeof bytes);
    if (count <= 0) break;
    outcome.output.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (log != nullptr) outcome.log = end_of(log);
  if (!outcome.failure.empty()) return outcome;
  if (WIFEXITED(status))
    outcome.exit_code = WEXITSTATUS(status);
  else
    outcome.failure = cat("crashed (signal ", WTERMSIG(status), ")");
  return outcome;
}

}  // namespace meshard::tool
