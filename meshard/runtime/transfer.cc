#include "meshard/runtime/transfer.h"

#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {

Tensor transfer(In x, const Sharding& sharding) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("transfer", x);
  auto rank = static_cast<std::size_t>(operand.rank());
  if (sharding.rank() > rank)
    throw_invalid(where, "[transfer] ", sharding, " describes ", sharding.rank(), " dimensions, ",
                  operand.type(), " has ", rank);
  if (only_recording())
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[transfer] a ", tracing() ? "traced" : "differentiated",
                    " function runs on one set of devices: transfer its arguments or results "
                    "outside of it"),
                where);
  compute(std::span(&operand, 1), where);
  return evaluator(where).place(
      operand.value(), sharding.rank() < rank ? sharding.with_rank(rank, where) : sharding, where);
}

Tensor transfer(In x, const Mesh& mesh, const PartitionSpec& spec) {
  return transfer(x, Sharding(mesh, spec, effective_source(x.where)));
}

}  // namespace meshard
