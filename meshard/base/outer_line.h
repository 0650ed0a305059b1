// The user's line while functions of the library call each other.
#pragma once
#include "meshard/base/source_location.h"

namespace meshard::internal {

/// Sets the function that returns the user's line of this thread; null outside of such a call.
/// graph/ does (SourceScope). Errors that are made during the call have that line.
void set_outer_line(const SourceLocation* (*outer)());

}  // namespace meshard::internal
