// A case of calls_*.json is run: its call, in what it stands (a batch, a loop, a branch), and the
// derivatives that were recorded.
#pragma once
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {

/// `{"out": [...], "vjp": [...], ...}` with arrays `{d, s, v}`; a part that meshard refuses is its
/// message.
/// @error Unreadable if the case says something not known.
Json run_call_case(const Json& test);

}  // namespace meshard::conformance
