// Compares our answer to a program of mesh_ops.json with the recorded one, operation by operation.
#pragma once
#include "tools/conformance/suite.h"

namespace meshard::conformance {

Verdict judge_program(const Json& test, const Json& answer);

}  // namespace meshard::conformance
