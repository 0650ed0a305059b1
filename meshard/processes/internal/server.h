// Process 0's server: connects the other processes with the Coordinator.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "meshard/processes/internal/coordinator.h"
#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// Owner of a thread that accepts connections, lets only processes take part that know the secret,
/// and answers them. Strangers cost it little: their messages are at most 512 bytes, they have 10 s
/// to prove that they know the secret, and at most 256 of them are connected at once.
class CoordinatorServer {
 public:
  static std::unique_ptr<CoordinatorServer> start(Listener listener, std::string secret, int size,
                                                  LivenessTimes times);
  /// Sends what is queued, if the sockets take it at once, and stops.
  ~CoordinatorServer();

  const ProcessAddress& address() const { return listener_.address(); }
  /// The other processes that have neither ended nor been lost. From any thread.
  std::vector<int> others_running() const;

 private:
  struct Stranger {
    MessageSocket socket;
    ServerHandshake handshake;
    ProcessClock::time_point deadline;
  };
  using Now = ProcessClock::time_point;

  CoordinatorServer(Listener listener, std::string secret, int size, LivenessTimes times);
  void run();
  void wait_for_events(Now now);
  void accept_strangers(Now now);
  void hear_strangers(Now now);
  /// @return false when the stranger is done with, one way or the other
  bool hear(Stranger& stranger, Now now);
  void hear_members(Now now);
  void send_beats(Now now);
  void send_outgoing();
  void close(int rank, Now now);

  Listener listener_;
  std::string secret_;
  int size_;
  LivenessTimes times_;
  WakeUp wake_;
  std::list<Stranger> strangers_;
  std::vector<std::optional<MessageSocket>> members_;  // by rank
  Now next_beat_{};
  Now accept_after_{};
  mutable std::mutex mutex_;  // of the members below
  bool stopping_ = false;
  std::vector<int> others_running_;
  Coordinator coordinator_;  // of the thread
  std::thread thread_;
};

}  // namespace meshard::internal
