#include "bench/peers/peer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace meshard::bench {

Peer::Peer(std::vector<std::string> command) : program_(command.at(0)) {
  std::signal(SIGPIPE, SIG_IGN);  // writing to a child that has ended returns an error
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) throw PeerError(std::string("no pipe: ") + std::strerror(errno));
  if (pipe2(out, O_CLOEXEC) != 0) {
    int reason = errno;
    close(in[0]);
    close(in[1]);
    throw PeerError(std::string("no pipe: ") + std::strerror(reason));
  }
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  int failed = posix_spawnp(&child_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (failed != 0) {
    close(to_);
    close(from_);
    throw PeerError(program_ + " cannot be started: " + std::strerror(failed));
  }
}

Peer::~Peer() {
  close(to_);  // the end of its input ends the child
  close(from_);
  waitpid(child_, nullptr, 0);
}

std::string Peer::read_line() {
  for (;;) {
    std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char buffer[4096];
    ssize_t count = read(from_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw PeerError(program_ + " has ended");
    unread_.append(buffer, static_cast<std::size_t>(count));
  }
}

nlohmann::json Peer::ask(const nlohmann::json& request) {
  std::string line = request.dump() + "\n";
  for (std::size_t written = 0; written < line.size();) {
    ssize_t count = write(to_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw PeerError(program_ + " has ended");
    written += static_cast<std::size_t>(count);
  }
  nlohmann::json answer = nlohmann::json::parse(read_line(), nullptr, false);
  if (answer.is_object() && answer.contains("error"))
    throw PeerError(answer["error"].get<std::string>());
  if (!answer.is_object() || !answer.contains("ok"))
    throw PeerError(program_ + " did not answer in JSON");
  return answer["ok"];
}

PeerWork::PeerWork(Peer& peer, const std::string& work, const nlohmann::json& with)
    : peer_(peer), facts_(peer.ask({{"do", "prepare"}, {"work", work}, {"with", with}})) {}

PeerWork::~PeerWork() {
  try {
    peer_.ask({{"do", "drop"}, {"id", facts_["id"]}});
  } catch (const std::exception&) {  // it has ended, and its work with it
  }
}

double PeerWork::run() {
  nlohmann::json answer = peer_.ask({{"do", "run"}, {"id", facts_["id"]}, {"count", 1}});
  return answer.at("seconds").at(0).get<double>();
}

}  // namespace meshard::bench
