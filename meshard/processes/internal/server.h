// Process 0's server: connects the other processes with the Coordinator.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "meshard/processes/internal/coordinator.h"
#include "meshard/processes/internal/doorkeeper.h"
#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// Owner of a thread that accepts connections, lets only processes take part that know the secret
/// (doorkeeper.h), and answers them.
class CoordinatorServer {
 public:
  static std::unique_ptr<CoordinatorServer> start(Listener listener, std::string secret, int size,
                                                  LivenessTimes times);
  /// Sends what is queued, if the sockets take it at once, and stops.
  ~CoordinatorServer();

  const ProcessAddress& address() const { return door_.address(); }
  /// The other processes that have neither ended nor been lost. From any thread.
  std::vector<int> others_running() const;

 private:
  using Now = ProcessClock::time_point;

  CoordinatorServer(Listener listener, std::string secret, int size, LivenessTimes times);
  void run();
  void wait_for_events(Now now);
  void admit_strangers(Now now);
  void hear_members(Now now);
  void send_beats(Now now);
  void send_outgoing();
  void close(int rank, Now now);

  Doorkeeper door_;
  int size_;
  LivenessTimes times_;
  WakeUp wake_;
  std::vector<std::optional<MessageSocket>> members_;  // by rank
  Now next_beat_{};
  mutable std::mutex mutex_;  // of the members below
  bool stopping_ = false;
  std::vector<int> others_running_;
  Coordinator coordinator_;  // of the thread
  std::thread thread_;
};

}  // namespace meshard::internal
