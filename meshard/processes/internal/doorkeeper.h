// Lets other processes in that know the secret.
#pragma once
#include <poll.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/process_status.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// Owner of a listening socket and of the connections that have not proved yet that they know the
/// secret. These strangers cost it little: their messages are at most 512 bytes, they have 10 s for
/// their proof, and at most 256 of them are connected at once. Used by one thread.
class Doorkeeper {
 public:
  using Now = ProcessClock::time_point;
  /// A connection that has proved that it knows the secret, and that it is `rank`.
  struct Guest {
    int rank;
    MessageSocket socket;
  };

  /// @param size the number of ranks; a stranger must have one of them
  /// @param rest how long it accepts nothing if there are no free file handles
  Doorkeeper(Listener listener, std::string secret, int size, std::chrono::milliseconds rest)
      : listener_(std::move(listener)), secret_(std::move(secret)), size_(size), rest_(rest) {}
  // Handshakes refer to the secret.
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  const ProcessAddress& address() const { return listener_.address(); }
  /// Adds what poll() has to wait for.
  void add_events(std::vector<pollfd>& events, Now now) const;
  /// Accepts connections, and reads messages of unverified processes.
  /// @param why_not the reason why a rank may not connect; empty: it may
  /// @return the newly connected processes
  std::vector<Guest> admit(Now now, const std::function<std::string(int rank)>& why_not);

 private:
  struct Stranger {
    MessageSocket socket;
    ServerHandshake handshake;
    Now deadline;
  };
  void accept_strangers(Now now);
  /// @return false when the stranger is done with, one way or the other
  bool hear(Stranger& stranger, const std::function<std::string(int)>& why_not,
            std::vector<Guest>& guests) const;

  Listener listener_;
  std::string secret_;
  int size_;
  std::chrono::milliseconds rest_;
  std::list<Stranger> strangers_;
  Now accept_after_{};
};

/// What poll() has to wait for on a connection.
pollfd events_of(const MessageSocket& socket);

}  // namespace meshard::internal
