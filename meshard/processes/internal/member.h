// A process's connection to process 0.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/process_status.h"
#include "meshard/processes/loss.h"
#include "meshard/processes/processes.h"

namespace meshard::internal {

/// Where and as whom to connect.
struct MemberOptions {
  /// All are tried in turn.
  std::vector<ProcessAddress> addresses;
  std::string secret;
  int rank = 0;
  LivenessTimes times;
  /// How long process 0 may take to start.
  std::chrono::milliseconds limit{0};
  /// Called once for each lost process, on the connection's thread.
  std::function<void(const ProcessLoss&)> on_loss;
};

/// One connection, ready for messages of a member: both sides have proved that they know the
/// secret. Of the options, it reads the secret and the rank.
/// @error unavailable if nothing answers at the address; unauthenticated for a wrong secret; the
/// reason of a refusal
Result<MessageSocket> connect_as_member(const ProcessAddress& address, const MemberOptions& options,
                                        ProcessClock::time_point deadline);

/// Owner of a connection and its thread, which gives signs of life whatever other threads do.
class MemberConnection {
 public:
  /// Connects and proves that it knows the secret, and that process 0 does.
  /// @error unavailable if process 0 is not reached within the limit; unauthenticated for a wrong
  /// secret; the reason of a refusal
  static Result<std::unique_ptr<MemberConnection>> open(MemberOptions options);
  ~MemberConnection() { close(); }

  /// Sends a request and waits for the reply.
  /// @return the reply, whose `number` may be an error code
  /// @error unavailable if process 0 is lost
  Result<Message> request(Message message);

  /// What this process is doing, for the others.
  void set_activity(std::string_view text);
  std::string activity() const;
  /// Asked while there is no activity (Processes::set_activity_source).
  using ActivitySource = std::function<ProcessActivity()>;
  void set_activity_source(ActivitySource source);
  /// This process comes to no further step: its program has ended.
  void set_ended();
  /// Host and process id of process 0, for messages.
  void set_server(std::string host, int pid);
  /// Tells process 0 that this process ends, with which status. Losses of others are still
  /// reported, except the end of process 0.
  void say_bye(int status);
  /// Reports no losses any more.
  void ignore_losses();
  /// Closes the connection; the others regard it as a death unless say_bye() was called. Requests
  /// fail afterward. Not from on_loss.
  void close();
  /// Where it leads from and to.
  const ConnectionEnds& ends() const { return ends_; }
  /// True on the thread that calls on_loss.
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  MemberConnection(MemberOptions options, MessageSocket socket);
  void run();
  bool hear();
  void take(Message message);
  void beat(ProcessClock::time_point now);
  void lose_server(LossKind kind);
  void report(const ProcessLoss& loss);

  MemberOptions options_;
  MessageSocket socket_;  // of the thread
  const ConnectionEnds ends_;
  WakeUp wake_;
  OwnStalls stalls_;
  ProcessClock::time_point heard_;
  ProcessClock::time_point doubted_until_{};  // process 0, after a long silence
  ProcessClock::time_point next_beat_;
  ProcessLoss server_;  // what is known about process 0, should it be lost
  ProcessClock::time_point server_in_activity_;

  mutable std::mutex mutex_;  // of the members below
  std::condition_variable replied_;
  std::vector<Message> queue_;
  std::map<std::uint64_t, std::optional<Message>> replies_;
  std::uint64_t last_request_ = 0;
  std::optional<Error> failure_;
  bool said_bye_ = false;
  bool closing_ = false;
  bool stopping_ = false;

  mutable std::mutex activity_mutex_;
  std::string activity_;
  ActivitySource source_;
  ProcessClock::time_point in_activity_;
  bool ended_ = false;

  std::thread thread_;
};

}  // namespace meshard::internal
