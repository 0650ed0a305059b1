// mesh_ops.json: programs of mesh operations, seen from several ranks.
#include "tools/conformance/mesh_ops/judge.h"
#include "tools/conformance/mesh_ops/program.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

Suite mesh_ops_suite() { return {"mesh_ops.json", run_program, judge_program}; }

}  // namespace meshard::conformance
