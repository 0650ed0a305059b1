// A socket that sends and receives messages without blocking.
#pragma once
#include <optional>
#include <string>

#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {

/// Move-only owner of a connected socket, and of the bytes that are on their way.
class MessageSocket {
 public:
  explicit MessageSocket(FileHandle socket, std::size_t limit = kMostStrangerBytes)
      : socket_(std::move(socket)), reader_(limit) {}

  int get() const { return socket_.get(); }
  void set_limit(std::size_t limit) { reader_.set_limit(limit); }

  /// Queues a message; flush() sends it.
  void send(const Message& message) { out_ += encode(message); }
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
