// Other projects in processes of their own, which run the same work in turns with ours.
#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace meshard::bench {

/// A peer could not do what it was asked; the message is the peer's.
class PeerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A child process that answers requests, one line of JSON each: bench/peers/protocol.py.
class Peer {
 public:
  /// Starts `command`, a program and its arguments. @error PeerError
  explicit Peer(std::vector<std::string> command);
  /// Ends the child.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// The answer to a request. @error PeerError if the answer is an error, or the child has ended.
  nlohmann::json ask(const nlohmann::json& request);

 private:
  std::string read_line();

  std::string program_, unread_;
  int child_ = 0, to_ = -1, from_ = -1;
};

/// A work that a peer has prepared. It is released at the end of its life.
class PeerWork {
 public:
  /// @error PeerError
  PeerWork(Peer& peer, const std::string& work,
           const nlohmann::json& with = nlohmann::json::object());
  ~PeerWork();
  PeerWork(const PeerWork&) = delete;
  PeerWork& operator=(const PeerWork&) = delete;

  /// What the peer reported when the work was prepared.
  const nlohmann::json& facts() const { return facts_; }
  /// Runs it once. The seconds that count. @error PeerError
  double run();

 private:
  Peer& peer_;
  nlohmann::json facts_;
};

}  // namespace meshard::bench
