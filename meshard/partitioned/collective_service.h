// Answers the collectives of programs that run in this process.
#pragma once
#include <memory>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/partitioned/launch_history.h"
#include "meshard/pjrt/client.h"
#include "meshard/processes/communicator.h"

namespace meshard {

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
