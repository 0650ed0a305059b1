#include "tools/conformance/worker.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "meshard/base/cat.h"
#include "meshard/runtime/runtime.h"

namespace meshard::conformance {
namespace {

using Clock = std::chrono::steady_clock;

void send_line(int socket, std::string line) {
  line += '\n';
  for (std::size_t at = 0; at < line.size();) {
    // If the process died, this returns an error instead of raising a signal.
    ssize_t sent = ::send(socket, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the next read reports the reason
    at += static_cast<std::size_t>(sent);
  }
}

enum class Reading { kLine, kEnd, kTooLate };

Reading read_line(int socket, std::string& line, int seconds) {
  Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  while (line.empty() || line.back() != '\n') {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{socket, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0)
      return Reading::kTooLate;
    char bytes[1 << 16];
    ssize_t count = ::read(socket, bytes, sizeof bytes);
    if (count <= 0) return Reading::kEnd;
    line.append(bytes, static_cast<std::size_t>(count));
  }
  return Reading::kLine;
}

/// Waits for the process to end, and describes how it ended.
std::string ending_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  if (WIFSIGNALED(status)) return cat("its process died of signal ", WTERMSIG(status));
  return cat("its process ended with exit code ", WEXITSTATUS(status));
}

Json answer_here(const Json& request) {
  GoldenFile file{request.at("file").get<std::string>(), {}};
  const Suite* suite = find_suite(file.path.filename().string());
  try {
    return {{"answer", answer_or_unknown(*suite, request.at("input"), file)}};
  } catch (const std::exception& error) {
    return {{"failure", error.what()}};
  }
}

}  // namespace

Workers::~Workers() {
  for (const auto& [devices, process] : processes_) {
    ::close(process.socket);
    ::waitpid(process.id, nullptr, 0);
  }
}

Workers::Process Workers::start(int devices) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("cannot make a socket");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string count = std::to_string(devices);
  std::string option = "--worker";
  char* arguments[] = {program.data(), option.data(), count.data(), nullptr};
  Process process{0, ends[0]};
  int failure =
      ::posix_spawn(&process.id, program.c_str(), &actions, nullptr, arguments, ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) {
    ::close(ends[0]);
    throw std::runtime_error("cannot start a process");
  }
  return process;
}

Json Workers::ask(int devices, const std::string& file, const Json& input, int seconds) {
  auto found = processes_.find(devices);
  if (found == processes_.end()) found = processes_.emplace(devices, start(devices)).first;
  Process process = found->second;
  send_line(process.socket, Json{{"file", file}, {"input", input}}.dump());
  std::string line;
  if (Reading reading = read_line(process.socket, line, seconds); reading != Reading::kLine) {
    ::close(process.socket);
    processes_.erase(found);
    if (reading == Reading::kTooLate) ::kill(process.id, SIGKILL);
    std::string ending = ending_of(process.id);
    throw std::runtime_error(reading == Reading::kTooLate ? cat("no answer within ", seconds, " s")
                                                          : ending);
  }
  Json reply = Json::parse(line);
  if (reply.contains("failure")) throw std::runtime_error(reply.at("failure").get<std::string>());
  return reply.at("answer");
}

Json answer_or_unknown(const Suite& suite, const Json& input, const GoldenFile& file) {
  try {
    return suite.answer(input, file);
  } catch (const Json::exception&) {
    return {};
  }
}

int serve_answers(int devices) {
  Json instead;  // replaces every answer, if there are no devices
  try {
    configure_runtime({.cpu_devices = devices}).value();
    (void)runtime_client();
  } catch (const Error& error) {
    bool missing = error.code() == ErrorCode::kNotFound;
    instead = missing ? Json{{"answer", {{"skipped", cat("no plugin: ", error.message())}}}}
                      : Json{{"failure", error.message()}};
  }
  for (std::string line; std::getline(std::cin, line);)
    std::cout << (instead.is_null() ? answer_here(Json::parse(line)) : instead).dump() << std::endl;
  ::_exit(0);  // does not wait for a plugin's threads
}

}  // namespace meshard::conformance
