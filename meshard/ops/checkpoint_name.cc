#include "meshard/ops/checkpoint_name.h"

#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {

extern constinit const OpDef checkpoint_name_op = {
    .name = "checkpoint_name",
    .operands = "x",
    .doc = "The operand itself, with a name by which policies of checkpoint() can keep it.",
    .example = "checkpoint_name(x, \"x\")",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const std::string& name = call.as<CheckpointNameAttributes>().name;
          if (name.empty() || name.find_first_of(",\"\\") != name.npos)
            call.fail("invalid name '", name, "': it is empty, or contains a comma or a quote");
          results.push_back(call.operand(0));
        },
    .sharding_rule = element_wise::rule,
    // A reshape to the same shape; the compiler removes it.
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.reshape").done(); },
    .vjp = [](const VjpCall& call, std::span<Tensor> out) { out[0] = call.cotangents[0]; },
    .batch = batch_unchanged,
    .samples =
        [](SampleSource& source) {
          return element_wise::unary_samples(source,
                                             [](In x) { return checkpoint_name(x, "kept"); });
        },
    .parse_attributes = parse_attributes<CheckpointNameAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor checkpoint_name(In x, std::string_view name) {
  Tensor operand = operand_tensor(checkpoint_name_op, x);
  return record(checkpoint_name_op, make_attributes(CheckpointNameAttributes{std::string(name)}),
                {&operand}, x.where);
}

const std::string* checkpoint_name_of(const Node& node) {
  return &node.op() == &checkpoint_name_op ? &node.attributes_as<CheckpointNameAttributes>().name
                                           : nullptr;
}

}  // namespace meshard
