#include "meshard/runtime/transfer_spec.h"

#include "meshard/graph/record.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/runtime/transfer.h"

namespace meshard {

Tensor transfer(In x, const ShardingSpec& spec) {
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("transfer", x);
  return transfer(In(operand, where), spec.sharding(operand.shape(), where));
}

}  // namespace meshard
