// mesh_ops.json: programs of mesh operations, observed from several ranks.
#include "tools/conformance/devicemesh/mesh_ops/judge.h"
#include "tools/conformance/devicemesh/mesh_ops/program.h"
#include "tools/conformance/suite.h"

namespace meshard::conformance {

Suite mesh_ops_suite() {
  auto answer = [](const Json& input, const GoldenFile&) { return run_program(input); };
  return {"mesh_ops.json", answer, judge_program};
}

}  // namespace meshard::conformance
