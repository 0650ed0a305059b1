// Steps that all processes of a run take together, by its store and barriers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard::io::internal {

/// Waits until all processes have come to a step.
/// @param name the same in all processes, and different for each step of a program
/// @param what this process does there, for messages: `save of run.safetensors`
/// @error deadline exceeded if others do not come within MESHARD_PROCESS_WAIT_SECONDS; unavailable
/// if a process is lost
Result<void> meet_all(const std::string& name, const std::string& what, SourceLocation where);

/// Decides something in process 0, from what all processes say, and tells all of them.
/// @param name, what as for meet_all(); `keys` is a prefix of keys in the store that only steps of
/// one kind use, one after the other
/// @param own what this process says, or why it cannot take part: it comes in either case
/// @param decide called in process 0 with what all have said, by rank
/// @return what process 0 has decided, equal in all processes
/// @error the first error of any process, naming it if it is another one; that of `decide`; as
/// meet_all()
Result<std::string> decide_jointly(
    const std::string& name, const std::string& what, const std::string& keys,
    const Result<std::string>& own,
    const std::function<Result<std::string>(const std::vector<std::string>& said)>& decide,
    SourceLocation where);

}  // namespace meshard::io::internal
