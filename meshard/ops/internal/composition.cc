// Tested in meshard/ops/decomposition_test.cc.
#include "meshard/ops/internal/composition.h"

#include "meshard/base/error.h"
#include "meshard/graph/body.h"

namespace meshard::internal {

void emit_composition(const OpCall& call, OpEmission& out, const BodyFunction& function) {
  std::vector<BodyInput> inputs;
  std::vector<stablehlo::Value> arguments;
  for (const OpEmission::Typed& operand : out.operands) {
    inputs.push_back({*operand.type, std::nullopt, call.where});
    arguments.push_back(operand.value);
  }
  TracedBody traced = trace_body(inputs, function, std::nullopt, call.where);
  internal_check(traced.captured.empty(), "[lowering] a composition captures values");
  std::vector<stablehlo::Value> made =
      out.bodies->write_program(traced.body.graph(), arguments, out.partitioned);
  for (std::size_t i = 0; i < made.size(); ++i)
    out.writer
        .op("stablehlo.reshape", {out.results[i]}, {{made[i], *out.results[i].type}}, out.location)
        .done();
}

}  // namespace meshard::internal
