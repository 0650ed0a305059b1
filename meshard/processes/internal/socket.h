// Stream sockets: TCP, and Unix sockets in the file system.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::internal {

/// Move-only owner of a file descriptor.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileHandle();
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A value: where process 0 listens.
struct ProcessAddress {
  std::string path = {};  ///< of a Unix socket; empty for TCP
  std::string host = {};  ///< name or number; empty: all addresses of this machine
  int port = 0;           ///< 0: any free one

  bool is_unix() const { return !path.empty(); }
  /// Parses `host:port`, `[::1]:port`, `/path` or `unix:/path`.
  /// @error invalid argument, naming the text and the forms
  static Result<ProcessAddress> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const ProcessAddress&, const ProcessAddress&) = default;
};

/// A socket that accepts connections. Owns the file of a Unix socket and removes it.
class Listener {
 public:
  /// A Unix socket gets mode 0600, in a folder that no other user may write (file_trust.h). One
  /// that a dead process has left is replaced.
  /// @error already exists if another process listens there; permission denied for the folder of a
  /// Unix socket; the system's error
  static Result<Listener> open(const ProcessAddress& address);
  Listener(Listener&& other) noexcept
      : socket_(std::move(other.socket_)), address_(std::exchange(other.address_, {})) {}
  Listener& operator=(Listener&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~Listener();

  int get() const { return socket_.get(); }
  /// The address, with the chosen port.
  const ProcessAddress& address() const { return address_; }

 private:
  Listener(FileHandle socket, ProcessAddress address)
      : socket_(std::move(socket)), address_(std::move(address)) {}
  FileHandle socket_;
  ProcessAddress address_;
};

/// Accepts a connection, which does not block.
/// @return -1 if none is waiting. Connections of other users to a Unix socket are closed.
FileHandle accept_connection(const Listener& listener);

/// Connects; the result does not block.
/// @error unavailable if no process listens there or the limit passes; permission denied if a Unix
/// socket belongs to another user
Result<FileHandle> connect_to(const ProcessAddress& address, std::chrono::milliseconds limit);

/// A value: the numeric addresses of both ends of a connection; empty for a Unix socket.
struct ConnectionEnds {
  std::string own;
  std::string other;
};
ConnectionEnds connection_ends(int descriptor);

/// Whether a name or number belongs to the loopback interface.
bool is_loopback(std::string_view host);

/// The numeric addresses of this machine's interfaces, apart from loopback and link-local ones.
std::vector<std::string> interface_addresses();

/// A name of this machine and its network namespace; equal in two processes if they reach each
/// other at 127.0.0.1.
std::string machine_name();
/// The name of the host, for messages.
std::string host_name();

}  // namespace meshard::internal
