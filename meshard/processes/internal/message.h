// The messages between the processes of a run and process 0, and their form on the wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// What a message is. All have the same fields; those that a kind does not name are empty.
enum class MessageKind : std::uint8_t {
  // Before the sender is known (handshake.h).
  kHello = 1,  ///< member: number = rank, name = version, value = its challenge
  kChallenge,  ///< process 0: value = its challenge
  kProof,      ///< member: value = its answer to the challenge
  kAccept,     ///< process 0: value = its answer
  kRefuse,     ///< process 0: number = error code, name = reason
  // Requests of a member; the answer is a kReply with the same `request`.
  kJoin,     ///< number = milliseconds to wait for all; value = a packed JoinRequest
  kPut,      ///< name = key, value
  kPublish,  ///< name = key, value
  kGet,      ///< name = key, number = milliseconds to wait (0: not at all, -1: for ever)
  kBarrier,  ///< name, number = milliseconds to wait (-1: for ever)
  kBye,      ///< number = exit status; the member ends
  // Without an answer.
  kBeat,  ///< either side: name = activity, number = its age in milliseconds; members also: value =
          ///< what they wait for (process_status.h)
  kReply,  ///< process 0: number = error code (0: success), name = error text, value = result
  kLost,   ///< process 0: value = a packed ProcessLoss
};

/// A value: one message.
struct Message {
  MessageKind kind = MessageKind::kBeat;
  std::uint64_t request = 0;  ///< chosen by the member; pairs a request with its reply
  std::int64_t number = 0;
  std::string name = {};
  std::string value = {};

  friend bool operator==(const Message&, const Message&) = default;
};

/// A value: how a member takes part.
struct JoinRequest {
  std::string host = {};
  int pid = 0;
  int local_devices = 1;
  /// The number of processes that it was started as one of.
  int count = 1;
  MESHARD_FIELDS(host, pid, local_devices, count)
};

/// Limits of a message's fields in bytes. What strangers send must be small.
inline constexpr std::size_t kMostNameBytes = 4096;
inline constexpr std::size_t kMostValueBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMostStrangerBytes = 512;

/// The bytes of a message: its size, then the fields.
/// @pre the name and the value are within the limits
std::string encode(const Message& message);
void append_encoded(std::string& out, const Message& message);

/// Cuts a stream of bytes into messages.
class MessageReader {
 public:
  /// `limit` is the largest message in bytes, without its size.
  explicit MessageReader(std::size_t limit = kMostStrangerBytes) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The next complete message, if there is one.
  /// @error invalid argument if the bytes are not a message; nothing can be read afterward
  Result<std::optional<Message>> next();

 private:
  std::size_t limit_;
  std::string bytes_;
  std::size_t begin_ = 0;  // of the bytes that are not read yet
};

/// The limit of MessageReader for messages of members.
inline constexpr std::size_t kMostMemberBytes = kMostNameBytes + kMostValueBytes + 64;

// A socket that sends and receives messages without blocking.

/// Move-only owner of a connected socket, and of the bytes that are on their way.
class MessageSocket {
 public:
  explicit MessageSocket(FileHandle socket, std::size_t limit = kMostStrangerBytes)
      : socket_(std::move(socket)), reader_(limit) {}

  int get() const { return socket_.get(); }
  void set_limit(std::size_t limit) { reader_.set_limit(limit); }

  /// Queues a message; flush() sends it.
  void send(const Message& message) { append_encoded(out_, message); }
  bool has_unsent() const { return !out_.empty(); }
  /// Sends what the socket takes now. @return false if the connection is broken
  bool flush();
  /// Tells the other side that nothing follows, even if a forked process has the socket, too.
  void shut_down();
  /// Reads what has arrived. @return false if the connection has ended or is broken; messages that
  /// came before can still be taken
  bool receive();
  /// The next message that has arrived.
  /// @error as MessageReader
  Result<std::optional<Message>> next() { return reader_.next(); }

 private:
  FileHandle socket_;
  MessageReader reader_;
  std::string out_;
};

/// Something that another thread can wait for with poll(): an eventfd.
class WakeUp {
 public:
  WakeUp();
  void notify();
  void clear();
  int get() const { return event_.get(); }

 private:
  FileHandle event_;
};

}  // namespace meshard::internal
