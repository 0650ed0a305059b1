// The processes that a child program started, after the child itself is gone.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

namespace meshard {

/// The environment variable that marks a child program and all that it starts, with a value that no
/// other child has: `MESHARD_CHILD=123-456-7`.
std::string child_mark();

/// Ends the processes of a group that carry a mark in their environment, and no others: the number
/// of a group whose leader was reaped may already be another group's. Looks in /proc.
/// @return how many processes were ended
int end_marked_processes(pid_t group, std::string_view mark);

}  // namespace meshard
