// Every operation of a communicator, for every element type and reduction, against plain loops.
#pragma once
#include "meshard/processes/communicator.h"

namespace meshard {

/// What check_communicator() has found in one process.
struct CommunicatorChecks {
  int passed = 0;
  int failed = 0;
};

/// Called by all processes of the run. Prints failures to the standard error stream.
CommunicatorChecks check_communicator(Communicator& communicator);

/// The same for messages that are started.
CommunicatorChecks check_started_messages(ProcessCommunicator& communicator);

}  // namespace meshard
