// Runs a case of calls_*.json: its call, what the call is wrapped in (a batch, a loop, a branch),
// and the derivatives that were recorded.
#pragma once
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {

/// `{"out": [...], "vjp": [...], ...}` with arrays `{d, s, v}`; for a part that meshard rejects,
/// the error message.
/// @error Unreadable if the case has something unknown.
Json run_call_case(const Json& test);

}  // namespace meshard::conformance
