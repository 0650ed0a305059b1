// Tested in meshard/ops/movement_test.cc.
#include "meshard/ops/definition/operand.h"

#include "meshard/ops/constant.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/reshape.h"

namespace meshard {

Tensor operand_tensor(std::string_view op, const In& x) {
  if (!x.tensor) {
    DType dtype = x.scalar.kind == ScalarKind::kBool      ? DType::bool_
                  : x.scalar.kind == ScalarKind::kInteger ? kDefaultInteger
                                                          : kDefaultFloat;
    return element_wise::to_tensor(x, dtype);
  }
  if (!x.tensor->defined())
    throw_invalid(effective_source(x.where), "[", op,
                  "] an operand has no value: it was default-constructed or moved from");
  return *x.tensor;
}

Tensor operand_tensor(const OpDef& op, const In& x) { return operand_tensor(op.name, x); }

Tensor filled(const TensorType& type, double value) {
  return broadcast_to(constant(HostArray::full(TensorType{type.dtype, {}}, value)), type.shape);
}

void check_one_each(const OpCall& call, std::string_view what, std::size_t count,
                    const TensorType& operand) {
  if (count != static_cast<std::size_t>(operand.rank()))
    call.fail(what, " has ", count, " entries, ", operand, " has rank ", operand.rank());
}

void check_dimension(const OpCall& call, std::string_view what, std::int64_t dimension) {
  const TensorType& operand = call.operand(0);
  if (dimension < 0 || dimension >= operand.rank())
    call.fail(what, " ", dimension, " is outside 0..", operand.rank() - 1, " of ", operand);
}

InlineVector<int, 6> factors_with_whole(ShardingRuleBuilder& builder, const Shape& shape,
                                        std::int64_t dimension) {
  InlineVector<int, 6> factors;
  for (int d = 0; d < shape.rank(); ++d)
    factors.push_back(builder.factor(
        shape[d], d == dimension ? FactorKind::kNeedReplication : FactorKind::kPassThrough));
  return factors;
}

TensorFactors one_factor_each(const InlineVector<int, 6>& factors) {
  TensorFactors tensor;
  tensor.reserve(factors.size());
  for (int factor : factors) tensor.push_back({factor});
  return tensor;
}

}  // namespace meshard
