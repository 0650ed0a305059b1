// The state of a run in process 0: its members, the store, barriers, and who is lost.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/process_status.h"
#include "meshard/processes/loss.h"

namespace meshard::internal {

/// A state machine without I/O or clock: messages of members come in, messages to members go out.
/// The server (server.h) connects it with sockets.
class Coordinator {
 public:
  using Time = ProcessClock::time_point;

  /// @pre size >= 1
  Coordinator(int size, LivenessTimes times, Time now);

  /// Takes note that the process has proved to be `rank`, before its first message.
  /// @return why it may not take part; empty if it may
  std::string connected(int rank, Time now);
  /// Takes a message of a connected member.
  /// @return false if it is not one that a member may send: the connection must be closed
  bool receive(int rank, Message message, Time now);
  /// The connection of a member was closed.
  void closed(int rank, Time now);
  /// Lets time pass: limits of waits, and signs of life. Called at least once in each beat.
  void advance(Time now);

  /// How long until advance() has something to do, at most one beat.
  std::chrono::milliseconds next_step(Time now) const;

  /// Messages to send, in order, with the rank that receives each.
  std::vector<std::pair<int, Message>> take_outgoing() { return std::exchange(outgoing_, {}); }
  /// The ranks that are connected and have neither ended nor been lost, apart from process 0.
  std::vector<int> others_running() const;
  /// What is known about process 0 goes to the others with each beat.
  Message own_beat(Time now) const;

 private:
  enum class State : std::uint8_t { kAbsent, kConnected, kJoined, kEnded, kLost };
  struct Member {
    State state = State::kAbsent;
    bool open = false;  // its connection
    Time heard{};
    std::string host;
    int pid = 0;
    int devices = 1;
    std::string activity;
    Time in_activity{};
    // When its program ended; its goodbye may follow later.
    std::optional<Time> ended_at = std::nullopt;
    std::optional<ProcessStatus> status;
    Time status_at{};
    // The barrier whose limit passed for it while others go on waiting, and that limit.
    std::optional<std::string> gave_up;
    std::chrono::milliseconds gave_up_after{};
  };
  struct Value {
    std::string value;
    int writer = 0;
  };
  /// A request that is answered later.
  struct Wait {
    MessageKind kind = MessageKind::kGet;
    int rank = 0;
    std::uint64_t request = 0;
    std::string name;
    std::int64_t limit = 0;  // milliseconds; negative: none
    Time deadline{};
  };

  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  void send(int rank, Message message) { outgoing_.emplace_back(rank, std::move(message)); }
  void reply(int rank, std::uint64_t request, std::string value = {});
  void reply_error(int rank, std::uint64_t request, ErrorCode code, std::string text);

  bool join(int rank, const Message& message, Time now);
  void all_joined();
  void put(int rank, Message message);
  void publish(int rank, Message message);
  void get(int rank, Message message, Time now);
  void barrier(int rank, const Message& message, Time now);
  void bye(int rank, const Message& message, Time now);
  void lose(int rank, LossKind kind, int status, Time now);
  void report_loss(const ProcessLoss& loss);
  /// Notices waits that will never end.
  void look_for_stuck_waits(Time now);

  void store(int rank, const std::string& key, std::string value);
  /// Why a wait for all processes cannot end any more; empty if it can.
  std::string gone_text() const;
  /// Ends all waits of the kinds that need lost processes, with an error.
  void fail_waits(const std::string& text);
  void expire(const Wait& wait, Time now);
  static bool is_in_barrier(const Wait& wait, std::string_view barrier) {
    return wait.kind == MessageKind::kBarrier && wait.name == barrier;
  }
  bool somebody_waits_in(std::string_view barrier) const;
  /// The processes that do not wait in the barrier (or have not joined), each with its activity, or
  /// with the fact that it has given up.
  std::string missing_text(const Wait& wait, Time now) const;
  void add_wait(MessageKind kind, int rank, const Message& message, Time now);

  LivenessTimes times_;
  OwnStalls stalls_;
  Time next_look_{};  // for waits that never end
  std::vector<Member> members_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<Wait> waits_;
  std::optional<ProcessLoss> first_loss_;
  std::vector<std::pair<int, Message>> outgoing_;
};

}  // namespace meshard::internal
