// Collectives over TCP without MPI: messages by Gloo, through libmeshard_gloo.so, and collectives
// made of them.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "meshard/processes/communicator.h"
#include "meshard/processes/store.h"

struct MeshardGlooApi;
struct MeshardGlooMessage;

namespace meshard {

/// How a process takes part.
struct GlooOptions {
  int rank = 0;
  int size = 1;
  /// The numeric address at which this process listens, for the others.
  std::string host = "127.0.0.1";
  /// The same in all processes: each proves to each other that it has it.
  std::string secret = {};
  /// How long the connections may take.
  std::chrono::milliseconds limit = std::chrono::minutes(5);
  /// Called before an error of Gloo is returned: a closed connection is noticed before it is known
  /// which process has died, and of what.
  std::function<void()> before_error = {};
};

/// Owner of the connections to all other processes of a run.
class GlooCommunicator : public ProcessCommunicator {
 public:
  /// Opens the library and connects, by addresses that the processes exchange through `store`.
  /// Called once, by all processes.
  /// @error not found, with the places where the library was searched; failed precondition for a
  /// library of another version; unauthenticated if another process does not know the secret;
  /// Gloo's own
  static Result<std::unique_ptr<GlooCommunicator>> open(GlooOptions options, Store& store);

  /// Waits for all processes, and closes the connections.
  /// @error Gloo's own
  Result<void> finalize();
  /// The name and version of the Gloo library.
  Result<std::string> library_name() const;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  /// Sums and products are combined in the order of the group, by one process for each element.
  Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                    void* out) override;
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override;
  Result<void> exchange(std::span<const OutgoingMessage> sent,
                        std::span<const IncomingMessage> received) override;
  Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage& message) override;
  Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage& message) override;
  int largest_tag() const override;

 private:
  GlooCommunicator(const MeshardGlooApi* api, GlooOptions options)
      : api_(api), options_(std::move(options)) {}
  Result<void> prove_secret();
  Result<void> move(std::span<const MeshardGlooMessage> sent,
                    std::span<const MeshardGlooMessage> received, std::string_view what);
  Result<void> all_gather_or_to_all(std::span<const int> group, const GroupCall& call,
                                    const void* in, void* out);
  Result<void> broadcast_by_tree(std::span<const int> group, const GroupCall& call, void* data);

  const MeshardGlooApi* api_;
  GlooOptions options_;
};

/// A value: the Gloo that a run would use.
struct GlooLibrary {
  /// libmeshard_gloo.so
  std::string path;
  /// The name and version of the Gloo library behind it.
  std::string name;
};

/// Opens the library and asks for its name. Nothing is connected.
/// @error as GlooCommunicator::open; unavailable if Gloo itself is not installed
Result<GlooLibrary> installed_gloo_library();

}  // namespace meshard
