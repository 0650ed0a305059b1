// Collectives by MPI, through libmeshard_mpi.so.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "meshard/processes/communicator.h"

struct MeshardMpiApi;

namespace meshard {

/// Implementations of MPI whose launchers and libraries fit each other.
enum class MpiFamily : std::uint8_t {
  kAny,  ///< not known
  kOpenMpi,
  kMpich,  ///< MPICH and what has its ABI: Intel MPI, MVAPICH
};

/// Owner of MPI in this process. MPI can be started once per process.
class MpiCommunicator : public ProcessCommunicator {
 public:
  /// Opens the library and starts MPI, unless the program has started it. `threads`: how many
  /// threads of this process may wait in MPI at the same time. `family`: that of the launcher.
  /// @error not found, with the places where the library was searched; failed precondition for a
  /// library of another version, or that was built for another MPI than the launcher's, which would
  /// give each process an MPI of its own; MPI's own error
  static Result<std::unique_ptr<MpiCommunicator>> open(int threads = 1,
                                                       MpiFamily family = MpiFamily::kAny);

  /// Ends MPI, if open() started it. Waits for all processes.
  /// @error MPI's own
  Result<void> finalize();
  /// The name and version of the MPI library.
  Result<std::string> library_name() const;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                    void* out) override;
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override;
  /// @error also if MPI allows no tag as large as one of these
  Result<void> exchange(std::span<const OutgoingMessage> sent,
                        std::span<const IncomingMessage> received) override;
  Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage& message) override;
  Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage& message) override;
  int largest_tag() const override;

  /// Cuts messages into pieces of this size instead of 1 GiB, for tests. 0: the default.
  void set_largest_message(std::size_t bytes);

 private:
  MpiCommunicator(const MeshardMpiApi* api, int rank, int size)
      : api_(api), rank_(rank), size_(size) {}
  const MeshardMpiApi* api_;
  int rank_;
  int size_;
};

/// A value: the MPI that a run would use.
struct MpiLibrary {
  /// libmeshard_mpi.so or libmeshard_mpich.so
  std::string path;
  /// The name and version of the MPI library behind it, on one line.
  std::string name;
  /// By its name.
  MpiFamily family = MpiFamily::kAny;
};

/// Opens the library for launchers of this family and asks for its name. MPI is not started.
/// @error as MpiCommunicator::open
Result<MpiLibrary> installed_mpi_library(MpiFamily family = MpiFamily::kAny);

/// The path of the library that fits a family: MESHARD_MPI_LIBRARY, else libmeshard_mpi.so, or for
/// kMpich first libmeshard_mpich.so, next to the library that holds this function or to the
/// program, in the lib folder beside it, or where meshard was installed.
/// @error not found, with all places
Result<std::string> find_mpi_library(MpiFamily family = MpiFamily::kAny);

}  // namespace meshard
