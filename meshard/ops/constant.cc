#include "meshard/ops/constant.h"

#include "meshard/graph/record.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"

namespace meshard {

extern constinit const OpDef constant_op = {
    .name = "constant",
    .operands = "",
    .doc = "A value that is part of the program.",
    .example = "constant(HostArray::scalar(2.0f))",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          results.push_back(call.as<ConstantAttributes>().value.type());
        },
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.writer.constant(out.results[0].value, call.as<ConstantAttributes>().value,
                              out.location);
        },
    .vjp = element_wise::zero_vjp,
    .samples =
        [](SampleSource& source) {
          HostArray value = source.uniform(DType::f32, {4, 8});
          return std::vector<OpSample>{
              {"matrix", {}, [value](auto) { return constant(value); }, false},
              {"one value everywhere",
               {},
               [](auto) {
                 return constant(HostArray::full<float>({4, 8}, 2.5f));
               },
               false},
              {"bools",
               {},
               [](auto) {
                 return constant(HostArray::from_vector<bool>({true, false, true}));
               },
               false},
          };
        },
    .parse_attributes = parse_attributes<ConstantAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor constant(HostArray value, SourceLocation where) {
  TensorType type = value.type();
  return record_typed(constant_op, make_attributes(ConstantAttributes{std::move(value)}), {}, type,
                      where);
}

}  // namespace meshard
