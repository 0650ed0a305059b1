// Requests of other programs to this one, over connections that are authenticated as those of a
// run.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/processes/store.h"

namespace meshard::internal {

/// A value: a request, or a message of the answer to one. The name has at most 4096 bytes, the
/// value at most 256 MiB.
struct ServedMessage {
  std::int64_t number = 0;
  std::string name = {};
  std::string value = {};
};

/// Checks an address (`host:port`, or the path of a Unix socket) and a secret for it, which may be
/// empty for a Unix socket only.
/// @error invalid argument, with the address and the length of the secret
Result<void> check_request_address(const std::string& address, const std::string& secret);

/// An address for process `rank` of a run whose process 0 listens at `address`, for
/// RequestServer::start: a free port, or a path beside that of a Unix socket.
/// @pre check_request_address(address)
std::string address_beside(const std::string& address, int rank);

/// Owner of a thread that answers the requests of programs that know the secret: those of one
/// connection in their order, each by any number of messages. A connection that takes nothing for
/// 30 s, or whose machine is gone, is closed.
class RequestServer {
 public:
  /// Identifies a connection; none is used twice.
  using Connection = std::uint64_t;
  /// Makes `message` the next one of an answer; false after the last one. The memory of its texts
  /// is used again. An error ends the answer.
  using Answer = std::function<Result<bool>(ServedMessage& message)>;
  /// Called on the server's thread; must return soon.
  struct Handler {
    /// The answer to a request; null if there is none yet: called again after wake().
    std::function<Answer(Connection, const ServedMessage& request)> answer;
    std::function<void(Connection)> closed;
  };

  /// Listens at an address: `host:0` is any free port, `:0` that at all addresses of this machine.
  /// @error as check_request_address; already exists if another process listens there; the system's
  /// errors
  static Result<std::unique_ptr<RequestServer>> start(const std::string& address,
                                                      const std::string& secret, Handler handler);
  ~RequestServer();
  RequestServer(const RequestServer&) = delete;
  RequestServer& operator=(const RequestServer&) = delete;

  /// Where others reach it; they try all in turn.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Requests may have an answer now. From any thread.
  void wake();

 private:
  class Thread;
  RequestServer(std::unique_ptr<Thread> thread, std::vector<std::string> addresses);
  std::unique_ptr<Thread> thread_;
  std::vector<std::string> addresses_;
};

/// Move-only owner of a connection to a RequestServer. Used by one thread at a time.
class RequestClient {
 public:
  /// Tries the addresses in turn until one answers.
  /// @error unavailable if none does within `limit`; unauthenticated for a wrong secret
  static Result<RequestClient> open(const std::vector<std::string>& addresses,
                                    const std::string& secret, std::chrono::milliseconds limit);
  RequestClient(RequestClient&&) noexcept;
  RequestClient& operator=(RequestClient&&) noexcept;
  ~RequestClient();

  /// Sends a request. Several may be on their way.
  void ask(const ServedMessage& request);
  /// The next message of the answers, which come in the order of the requests.
  /// @error that of the answer; deadline exceeded if nothing comes within `limit`; unavailable if
  /// the connection ends, or the server gives no sign of life for 5 s
  Result<ServedMessage> next(std::chrono::milliseconds limit = kNoTimeLimit);

 private:
  class State;
  explicit RequestClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace meshard::internal
