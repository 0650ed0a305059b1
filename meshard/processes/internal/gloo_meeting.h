// Whether, and at which addresses, the processes that were joined at an address connect by Gloo.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/processes/gloo_communicator.h"
#include "meshard/processes/internal/socket.h"
#include "meshard/processes/store.h"

namespace meshard::internal {

/// A value: what a process offers.
struct GlooOffer {
  std::string problem = {};  ///< why it cannot use Gloo
  /// The ends of its connection to process 0.
  std::string own_host = {}, other_host = {};
  MESHARD_FIELDS(problem, own_host, other_host)
};

/// A value: what process 0 decides.
struct GlooPlan {
  /// Why no process uses Gloo; empty: all do.
  std::string problem = {};
  std::string secret = {};
  /// Where the processes of process 0's machine listen.
  std::string first_host = {};
  MESHARD_FIELDS(problem, secret, first_host)
};

/// The plan for these offers, one of each process. All have to be able to use Gloo. Processes that
/// reach process 0 by the loopback interface are on its machine; they listen where processes of
/// other machines reach process 0, if there are any.
GlooPlan plan_of(const std::vector<GlooOffer>& offers, const std::vector<std::string>& members);

/// Where a process listens.
std::string listening_host(const GlooPlan& plan, const GlooOffer& own);

/// The connections, or why the processes have no Gloo.
struct GlooMeeting {
  std::unique_ptr<GlooCommunicator> communicator;
  std::string why_not;
};

/// Called by all processes; `options` has everything but host and secret. `members` names them.
/// @error the store's; Gloo's, when it connects
Result<GlooMeeting> meet_by_gloo(GlooOptions options, const ConnectionEnds& ends, Store& store,
                                 const std::vector<std::string>& members);

}  // namespace meshard::internal
