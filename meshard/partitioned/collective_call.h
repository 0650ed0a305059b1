// A collective between processes, as a compiled program calls it, and the service that answers it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/partitioned/launch_history.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/host_call.h"
#include "meshard/processes/communicator.h"

namespace meshard {

/// The target of the custom calls that replace collectives.
inline constexpr std::string_view kCollectiveTarget = "meshard.collective";

/// What a call does. The numbers are those in programs.
enum class CollectiveCallKind : std::int32_t {
  kAllReduce = 0,
  kAllGather = 1,
  kReduceScatter = 2,
  /// Along one dimension of an array.
  kAllToAll = 3,
  /// Operand i goes to member i; result i comes from member i.
  kAllToAllOfTuple = 4,
  kPermute = 5,
  kBroadcast = 6,
  /// The position of this process, as u32[].
  kPosition = 7,
};

/// HLO's name: `all-reduce`, `collective-permute`, `partition-id`.
std::string_view to_string(CollectiveCallKind kind);

/// A view of the attributes of one call. Processes are named by their rank.
struct CollectiveCall {
  CollectiveCallKind kind = CollectiveCallKind::kAllReduce;
  Reduction reduction = Reduction::kSum;
  /// The dimension that is gathered, scattered, or exchanged.
  std::int32_t dimension = 0;
  /// The members of all groups, one group after the other; for a permutation, pairs of source and
  /// target; for a position, the ranks by position, or nothing if they are equal.
  std::span<const std::int32_t> ranks = {};
  /// The sizes of the groups: one number if all groups have this size, else one for each group. For
  /// a permutation, the numbers of pairs in each round: a process sends once in a round.
  std::span<const std::int32_t> sizes = {};
  /// Whether the last operand and result are the value that orders the calls of a program.
  bool chained = false;
  /// Its name in the program, and its source line.
  std::string_view where = {};

  /// The attributes as text, as `backend_config` of a custom call: an MLIR dictionary.
  std::string to_string() const;
  /// @error invalid argument if the attributes are not those of a collective
  static Result<CollectiveCall> from_attributes(const pjrt::HostCall& call);

  /// The group that `rank` is a member of; empty if there is none.
  std::span<const std::int32_t> group_of(int rank) const;
};

/// Makes the call with `communicator`: reads the arguments and fills in the results.
/// @error the communicator's, with the kind of the collective and `where` as a note; internal if
/// the arrays do not fit the call; unimplemented for element types that have no DType
Result<void> perform(const CollectiveCall& collective, const pjrt::HostCall& call,
                     Communicator& communicator);

/// Makes the calls of collectives known to the plugin of `client`, before a program that has them
/// is compiled or loaded.
/// @error unimplemented if programs on this client cannot call functions of the process (only CPU
/// devices can)
Result<void> accept_collectives(const pjrt::Client& client);

/// Move-only: while it exists, collective calls that programs make on a device use a communicator.
class CollectiveService {
 public:
  /// For these devices of `client`; they are identified by their ids, which are unique among the
  /// CPU devices of a process that has one CPU client. `history`, if not null, learns which
  /// collective runs.
  /// @error those of accept_collectives; already exists if a device has a service
  static Result<CollectiveService> start(const pjrt::Client& client,
                                         std::shared_ptr<Communicator> communicator,
                                         std::vector<int> devices,
                                         std::shared_ptr<LaunchHistory> history = nullptr);

  CollectiveService(CollectiveService&& other) noexcept : devices_(std::move(other.devices_)) {
    other.devices_.clear();
  }
  CollectiveService& operator=(CollectiveService&& other) noexcept {
    devices_.swap(other.devices_);
    return *this;
  }
  /// Calls that are running go on; later ones are errors.
  ~CollectiveService();

 private:
  explicit CollectiveService(std::vector<int> devices) : devices_(std::move(devices)) {}
  std::vector<int> devices_;
};

}  // namespace meshard
