// Collective communication between the processes of one run, or between their devices.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "meshard/array/dtype.h"
#include "meshard/base/result.h"
#include "meshard/processes/reduction.h"

namespace meshard {

/// Moves data between the members of one run: its processes, or its devices
/// (device_communicator.h). Every member of `group` makes the same calls in the same order; a group
/// is a list of ranks, in the order of the group's members, and the caller is one of them. Any
/// thread may call; calls of one member do not overlap.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Combines `count` elements of each member; every member receives the result. `in` may be `out`.
  virtual Result<void> all_reduce(std::span<const int> group, Reduction op, DType type,
                                  const void* in, void* out, std::size_t count) = 0;
  /// Concatenates `bytes` bytes of each member, in the order of the group. `out` holds
  /// group.size() * bytes.
  virtual Result<void> all_gather(std::span<const int> group, const void* in, void* out,
                                  std::size_t bytes) = 0;
  /// Combines group.size() * count elements of each member; the i-th member receives the i-th
  /// block of `count` elements.
  virtual Result<void> reduce_scatter(std::span<const int> group, Reduction op, DType type,
                                      const void* in, void* out, std::size_t count) = 0;
  /// Sends the i-th block of `bytes` bytes to the i-th member, and receives one block from each.
  virtual Result<void> all_to_all(std::span<const int> group, const void* in, void* out,
                                  std::size_t bytes) = 0;
  /// Copies `bytes` bytes of `root_rank`, a member of the group, to all members.
  virtual Result<void> broadcast(std::span<const int> group, int root_rank, void* data,
                                 std::size_t bytes) = 0;
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

  /// Starts a message, without waiting for it. Started messages never meet those of exchange().
  /// Those of one tag from one process to another arrive in the order in which they were started.
  /// Any thread may call.
  virtual Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage& message) = 0;
  virtual Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage& message) = 0;
  /// The largest tag of a message, at least 32767.
  virtual int largest_tag() const = 0;
};

}  // namespace meshard
