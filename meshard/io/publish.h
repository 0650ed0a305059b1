// Tensors that go from the processes of one program to those of another, without files.
//
// All processes of a trainer publish versions of their weights; all processes of a server receive
// one, onto another mesh. Each process asks those that have parts of a tensor for what its own
// devices need. No process has a whole sharded tensor.
//
//     io::Publisher publisher = io::Publisher::open("10.0.0.1:7070").value();  // trainer
//     publisher.publish(params).value();
//
//     auto got = io::receive("10.0.0.1:7070", params).value();                 // server
//     params = got.value;
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "meshard/base/result.h"
#include "meshard/io/checkpoint.h"

namespace meshard::io {

/// How a publisher is found and trusted.
struct PublishOptions {
  /// At least 16 characters, the same in all processes of both programs. Empty:
  /// MESHARD_PUBLISH_SECRET. A Unix socket needs none: it accepts this user only.
  std::string secret = {};
};

/// A handle on what this program publishes. Copies share it; the last one stops publishing. All
/// processes of the run make one and publish with it, at the same places of their programs.
class Publisher {
 public:
  /// Listens: process 0 at the address, others at free ports of their machines (or at `ADDRESS.1`,
  /// `ADDRESS.2` if it is the path of a Unix socket). Receivers connect to all that have something
  /// for them.
  /// @param address `host:port` or `[IPv6 address]:port`, of the machine of process 0; or the path
  /// of a Unix socket, if both programs run on one machine. `host:0` is any free port.
  /// @error invalid argument for an invalid address or a secret that is too short; already exists
  /// if another program listens there; the same in all processes
  static Result<Publisher> open(const std::string& address, const PublishOptions& options = {},
                                SourceLocation where = SourceLocation::current());

  /// Where process 0 listens: `10.0.0.1:7070`.
  const std::string& address() const;

  /// Publishes the tensors and numbers of `structure` under their names in checkpoints
  /// (checkpoint.h). Computes recorded values, and copies the parts that this process sends from
  /// its devices to host memory, so that the tensors may be donated afterward; of a part that
  /// several processes have, one does. Receivers see the version when all processes have it, and
  /// nothing waits for them. Earlier versions are forgotten, except for those that are being
  /// received; these are kept until a later publish().
  /// @param version greater than that before, and at least 0. None: the one before plus 1,
  /// beginning with 0
  /// @return the version
  /// @error errors of the computation; invalid argument for such a version; failed precondition for
  /// a donated tensor, and if the processes publish different tensors; deadline exceeded if another
  /// process does not publish within MESHARD_PROCESS_WAIT_SECONDS; the same in all processes, and
  /// the versions before remain
  template <class T>
  Result<std::int64_t> publish(const T& structure, std::optional<std::int64_t> version = {},
                               SourceLocation where = SourceLocation::current()) {
    return publish_tensors(internal::writer_of(structure).in_order(address()), version, where);
  }

  /// How many programs are receiving now, as process 0 sees them; 0 in the others. One that dies
  /// is no longer counted, and the next publish() frees what was kept for it.
  int num_receivers() const;

  /// publish() of tensors that are named already.
  Result<std::int64_t> publish_tensors(Result<std::vector<internal::NamedTensors>> tensors,
                                       std::optional<std::int64_t> version, SourceLocation where);

 private:
  class State;
  explicit Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// What receive() waits for, and what it accepts.
struct ReceiveOptions {
  /// As of the publisher.
  std::string secret = {};
  /// Waits for a version that is greater. None: any version.
  std::optional<std::int64_t> newer_than = {};
  /// How long to wait until the publisher listens and has such a version.
  std::chrono::milliseconds limit = std::chrono::minutes(1);
  /// Whether published tensors for which the structure has no member are an error.
  bool strict = true;
};

/// A value: a structure of one version.
template <class T>
struct Received {
  T value;
  std::int64_t version = 0;
};

namespace internal {

/// Move-only owner of a version that this process is receiving: the publisher keeps it meanwhile.
class Receiving {
 public:
  /// All processes of the run get the same version. @error as receive()
  static Result<Receiving> open(const std::string& address, const ReceiveOptions& options,
                                SourceLocation where);
  Receiving(Receiving&&) noexcept;
  Receiving& operator=(Receiving&&) noexcept;
  ~Receiving();

  std::int64_t version() const;
  /// The published tensors, which are received when they are read, by one thread at a time.
  const Weights& weights() const;
  /// Ends it in all processes. @param own this process's error, if it has one
  /// @error `own`, or that of the first process that has one
  Result<void> finish(const Result<void>& own);

 private:
  class State;
  explicit Receiving(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace internal

/// Receives the newest version at an address into a structure like `like`. Each tensor of `like`
/// gives the required type, and by its sharding the placement, as for io::restore; it may be an old
/// value or an abstract_tensor(). Each process receives only what its own devices need, in any
/// layout. All processes of the run call it, and get the same version, whole: never a mix, whatever
/// is published meanwhile. The error is the same in all, too.
/// @param address as Publisher::address()
/// @error as io::restore, for members and types that differ; deadline exceeded or unavailable if
/// the publisher does not listen, or has no such version, within the limit; unauthenticated for
/// another secret; unavailable within about 5 s if a process of the publisher dies, or is suspended
template <class T>
Result<Received<T>> receive(const std::string& address, T like, const ReceiveOptions& options = {},
                            SourceLocation where = SourceLocation::current()) {
  MESHARD_ASSIGN_OR_RETURN(internal::Receiving receiving,
                           internal::Receiving::open(address, options, where));
  Result<T> value = caught([&] {
    return internal::restored(receiving.weights(), std::move(like), {.strict = options.strict},
                              where);
  });
  const Result<void> own = value.ok() ? Result<void>() : Result<void>(value.error());
  MESHARD_RETURN_IF_ERROR(receiving.finish(own));
  return Received<T>{*std::move(value), receiving.version()};
}

}  // namespace meshard::io
