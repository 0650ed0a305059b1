// Collective communication between the processes of one run, or between their devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "meshard/array/dtype/dtype.h"
#include "meshard/base/result.h"
#include "meshard/processes/reduction.h"

namespace meshard {

/// Owner of uninitialized bytes, for what is sent and received.
class MessageMemory {
 public:
  MessageMemory() = default;
  explicit MessageMemory(std::size_t size) : bytes_(new std::byte[size]) {}
  std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
};

/// A value: a collective, as each member of a group calls it. All must make the same call.
struct GroupCall {
  enum class Kind : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
  Kind kind = Kind::kAllReduce;
  Reduction op = Reduction::kSum;
  /// The dtype of combined elements; other kinds move bytes.
  DType type = DType::u8;
  /// The number of elements of one block, as in Communicator's functions.
  std::size_t count = 0;
  /// The rank of the sender of a broadcast.
  int root = -1;

  /// Bytes of one block.
  std::size_t bytes() const { return count * size_in_bytes(type); }
  /// Bytes that each of `members` receives.
  std::size_t result_bytes(std::size_t members) const {
    return kind == Kind::kAllGather || kind == Kind::kAllToAll ? members * bytes() : bytes();
  }
  friend bool operator==(const GroupCall&, const GroupCall&) = default;
  /// `all-reduce sum of 12 f32`
  std::string to_string() const;
};

/// Moves data between the members of one run: its processes, or its devices
/// (device_communicator.h). Every member of `group` makes the same calls in the same order; a group
/// is a list of ranks, in the order of the group's members, and the caller is one of them. Any
/// thread may call; calls of one member do not overlap.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Makes one of the calls below. `in` and `out` are the same for a broadcast.
  virtual Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                            void* out) = 0;
  /// Combines `count` elements of each member; every member receives the result. `in` may be `out`.
  Result<void> all_reduce(std::span<const int> group, Reduction op, DType type, const void* in,
                          void* out, std::size_t count) {
    return call(group, {GroupCall::Kind::kAllReduce, op, type, count}, in, out);
  }
  /// Concatenates `bytes` bytes of each member, in the order of the group. `out` holds
  /// group.size() * bytes.
  Result<void> all_gather(std::span<const int> group, const void* in, void* out,
                          std::size_t bytes) {
    return call(group, {.kind = GroupCall::Kind::kAllGather, .count = bytes}, in, out);
  }
  /// Combines group.size() * count elements of each member; the i-th member receives the i-th
  /// block of `count` elements.
  Result<void> reduce_scatter(std::span<const int> group, Reduction op, DType type, const void* in,
                              void* out, std::size_t count) {
    return call(group, {GroupCall::Kind::kReduceScatter, op, type, count}, in, out);
  }
  /// Sends the i-th block of `bytes` bytes to the i-th member, and receives one block from each.
  Result<void> all_to_all(std::span<const int> group, const void* in, void* out,
                          std::size_t bytes) {
    return call(group, {.kind = GroupCall::Kind::kAllToAll, .count = bytes}, in, out);
  }
  /// Copies `bytes` bytes of `root_rank`, a member of the group, to all members.
  Result<void> broadcast(std::span<const int> group, int root_rank, void* data, std::size_t bytes) {
    return call(group, {.kind = GroupCall::Kind::kBroadcast, .count = bytes, .root = root_rank},
                data, data);
  }
  /// Sends `in` to rank `to` (-1: to none; `in` may then be null) and receives `out` from rank
  /// `from` (-1: from none; `out` then becomes zeros, or is null).
  virtual Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) = 0;
};

/// Bytes for another process.
struct OutgoingMessage {
  int process = 0;
  /// From 0. The receiver asks for the same tag.
  int tag = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// Memory for bytes from another process.
struct IncomingMessage {
  int process = 0;
  int tag = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A message that is under way. Its memory is in use until it has ended.
class StartedMessage {
 public:
  virtual ~StartedMessage() = default;
  /// Whether all of it was sent or received; does not wait. Not called again after it has ended.
  /// @error why it could not be; it has then ended
  virtual Result<bool> has_ended() = 0;
  /// Gives up a receive that has not ended; nothing is written into its memory any more. Not called
  /// for a message that is sent.
  virtual void cancel() = 0;
};

/// A communicator between processes, whose threads can also exchange messages independently of one
/// another.
class ProcessCommunicator : public Communicator {
 public:
  /// Sends and receives all these messages at the same time, and returns when all have been sent
  /// and received. Messages of one tag from one process to another arrive in the order in which
  /// they were sent. Several threads of a process may call at the same time with different tags,
  /// also during another call.
  virtual Result<void> exchange(std::span<const OutgoingMessage> sent,
                                std::span<const IncomingMessage> received) = 0;

  /// Starts a message, without waiting for it. Started messages are never matched with messages of
  /// exchange().
  /// Messages of one tag from one process to another arrive in the order in which they were
  /// started.
  /// Any thread may call.
  virtual Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage& message) = 0;
  virtual Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage& message) = 0;
  /// The largest tag of a message, at least 32767.
  virtual int largest_tag() const = 0;
};

// Checks of a communicator's arguments that need no communication.

/// Checks that `group` lists distinct ranks from 0 to size - 1, `rank` among them.
/// @return the position of `rank` in the group
/// @error invalid argument, naming the group
Result<std::size_t> check_group(std::span<const int> group, int rank, int size);
/// Checks the group of a call, its reduction, and that its sizes fit.
/// @return the position of `rank` in the group
/// @error invalid argument
Result<std::size_t> check_call(std::span<const int> group, const GroupCall& call, int rank,
                               int size);
/// Checks the ranks of a permute; -1 is none.
/// @error invalid argument if a rank does not exist, or only one of `to` and `from` is `rank`
Result<void> check_permute(int to, int from, int rank, int size);
/// Checks a message to or from another process.
/// @error invalid argument unless `process` is another process of the run, or if the tag is
/// negative
Result<void> check_message(int process, int tag, int rank, int size);

}  // namespace meshard
