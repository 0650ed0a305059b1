#include "meshard/runtime/transfer.h"

#include "meshard/graph/evaluator.h"
#include "meshard/graph/record.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/process_runtime.h"

namespace meshard {

Tensor transfer(In x, const ShardingSpec& spec) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("transfer", x);
  return transfer(In(operand, where), spec.sharding(operand.shape(), where));
}

namespace {

// The stored operand of a transfer, and the sharding with its rank.
std::pair<Tensor, Sharding> checked(In x, const Sharding& sharding, SourceLocation where) {
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
  return {operand, sharding.rank() < rank ? sharding.with_rank(rank, where) : sharding};
}

}  // namespace

Tensor transfer(In x, const Sharding& sharding) {
  SourceLocation where = effective_source(x.where);
  auto [operand, target] = checked(x, sharding, where);
  return evaluator(where).place(operand.value(), target, where);
}

Tensor transfer(In x, const Mesh& mesh, const PartitionSpec& spec) {
  return transfer(x, Sharding(mesh, spec, effective_source(x.where)));
}

StartedTransfer start_transfer(In x, const Sharding& sharding) {
  SourceLocation where = effective_source(x.where);
  auto [operand, target] = checked(x, sharding, where);
  Runtime& runtime = process_runtime();
  runtime.platforms.know_default(where);
  return start_placing(runtime, operand.value(), target, where);
}

const Tensor& StartedTransfer::value() {
  if (rest_) value_ = std::exchange(rest_, nullptr)->finish();
  return value_;
}

}  // namespace meshard
