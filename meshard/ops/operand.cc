#include "meshard/ops/operand.h"

#include "meshard/ops/element_wise.h"

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
                  "] an operand has no value: it was default-made or moved from");
  return *x.tensor;
}

Tensor operand_tensor(const OpDef& op, const In& x) { return operand_tensor(op.name, x); }

TensorFactors one_factor_each(const InlineVector<int, 6>& factors) {
  TensorFactors tensor;
  tensor.reserve(factors.size());
  for (int factor : factors) tensor.push_back({factor});
  return tensor;
}

}  // namespace meshard
