// Ends the processes that a child program started, after the child itself is gone.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

namespace meshard {

/// A unique environment variable that marks a child program and its descendants:
/// `MESHARD_CHILD=123-456-7`.
std::string child_mark();

/// Kills the processes of a group whose environment contains the mark, found through /proc. Other
/// processes are left alone: after the leader of a group is reaped, another group may reuse its
/// number.
/// @return the number of killed processes
int end_marked_processes(pid_t group, std::string_view mark);

}  // namespace meshard
