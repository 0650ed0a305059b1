// How a process and process 0 prove to each other that they know the secret of the run.
//
//   member     kHello   rank, version, challenge M
//   process 0  kChallenge challenge S
//   member     kProof   HMAC(secret, "member"  | rank | M | S)
//   process 0  kAccept  HMAC(secret, "process 0" | rank | M | S)
//
// The secret is never sent. The codes of the two sides differ in their label, so that one cannot be
// sent back as the other, and both challenges are new random numbers, so that none can be repeated.
// Nothing after the handshake is encrypted: the secret decides who may take part, not who may read
// the network.
#pragma once
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/processes/internal/message.h"

namespace meshard::internal {

// HMAC-SHA256 (RFC 2104), and random bytes for it.

/// The 32 bytes of the code of `message` under `key`.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Compares two codes in a time that does not depend on where they differ.
bool equal_codes(std::string_view a, std::string_view b);

/// Bytes from the system's random number generator.
/// @error the system's error
Result<std::string> random_bytes(std::size_t count);

/// The version of the messages. Processes with different ones refuse each other.
inline constexpr std::string_view kMessageVersion = "meshard processes 2";

/// The side of process 0, for one connection. A state machine without I/O.
class ServerHandshake {
 public:
  /// `challenge`: 32 random bytes. The secret must outlive the handshake.
  ServerHandshake(std::string_view secret, int size, std::string challenge)
      : secret_(secret), size_(size), challenge_(std::move(challenge)) {}

  /// Takes the next message of the stranger.
  /// @return the message to send; after kRefuse, the connection is closed
  Message receive(const Message& message);
  /// True after the proof was right.
  bool accepted() const { return accepted_; }
  /// The rank that the other side has proved to be. @pre accepted()
  int rank() const { return rank_; }

 private:
  std::string_view secret_;
  int size_;
  std::string challenge_;
  std::string member_challenge_;
  int rank_ = -1;
  bool accepted_ = false;
};

/// The side of another process (and of process 0's own connection to itself).
class MemberHandshake {
 public:
  MemberHandshake(std::string_view secret, int rank, std::string challenge)
      : secret_(secret), rank_(rank), challenge_(std::move(challenge)) {}

  /// The first message.
  Message hello() const;
  /// Takes the next message; returns the one to send, if any.
  /// @error the reason of a kRefuse; unauthenticated if process 0 does not know the secret; invalid
  /// argument for a message out of order
  Result<std::optional<Message>> receive(const Message& message);
  bool accepted() const { return accepted_; }

 private:
  std::string_view secret_;
  int rank_;
  std::string challenge_;
  std::string server_challenge_;
  bool accepted_ = false;
};

/// A kRefuse with the error.
Message refusal(ErrorCode code, std::string reason);

}  // namespace meshard::internal
