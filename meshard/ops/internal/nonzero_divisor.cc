// Tested in meshard/ops/remainder_test.cc.
#include "meshard/ops/internal/nonzero_divisor.h"

namespace meshard::internal {

OpEmission::Typed nonzero_divisor(const OpCall& call, OpEmission& out) {
  const TensorType& type = call.operand(1);
  if (!is_integer(type.dtype)) return out.operands[1];
  stablehlo::ModuleWriter& w = out.writer;
  TensorType bools{DType::bool_, type.shape};
  OpEmission::Typed zero(w.temporary(), type), one(w.temporary(), type);
  OpEmission::Typed is_zero(w.temporary(), bools), result(w.temporary(), type);
  w.splat(zero.value, type, 0, out.location);
  w.splat(one.value, type, 1, out.location);
  w.op("stablehlo.compare", {is_zero}, {out.operands[1], zero}, out.location)
      .enumeration("comparison_direction", "comparison_direction", "EQ")
      .done();
  w.op("stablehlo.select", {result}, {is_zero, one, out.operands[1]}, out.location).done();
  return result;
}

}  // namespace meshard::internal
