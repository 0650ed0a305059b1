#include "meshard/ops/composite/layer_norm.h"

#include "meshard/ops/add.h"
#include "meshard/ops/composite/float_computation.h"
#include "meshard/ops/composite/square.h"
#include "meshard/ops/composite/statistics.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {
namespace {

Tensor normalised(const Tensor& x, double epsilon) {
  Tensor centred = subtract(x, mean(x, -1, true));
  Tensor variance = mean(square(centred), -1, true);
  return multiply(centred, rsqrt(add(variance, filled(TensorType{x.dtype(), {}}, epsilon))));
}

}  // namespace

Tensor layer_norm(In x, In scale, In bias, double epsilon) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  check_real("layer_norm", scale);
  check_real("layer_norm", bias);
  Tensor result = add(multiply(normalised(for_computation(operand), epsilon), scale), bias);
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor layer_norm(In x) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  return astype(normalised(for_computation(operand), 1e-5), float_result_dtype(operand.dtype()));
}

}  // namespace meshard
