#include "meshard/ops/composite/layer_norm.h"

#include "meshard/ops/add.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/composite/square.h"
#include "meshard/ops/composite/statistics.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/rsqrt.h"
#include "meshard/ops/subtract.h"

namespace meshard {
using namespace internal;
namespace {

Tensor normalized(const Tensor& x, double epsilon) {
  Tensor centered = subtract(x, mean(x, -1, true));
  Tensor variance = mean(square(centered), -1, true);
  return multiply(centered, rsqrt(add(variance, filled(TensorType{x.dtype(), {}}, epsilon))));
}

}  // namespace

Tensor layer_norm(In x, In scale, In bias, double epsilon) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  check_real("layer_norm", scale);
  check_real("layer_norm", bias);
  Tensor result = add(multiply(normalized(for_computation(operand), epsilon), scale), bias);
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor layer_norm(In x) {
  SourceScope line(x.where);
  Tensor operand = real_operand("layer_norm", x);
  return astype(normalized(for_computation(operand), 1e-5), float_result_dtype(operand.dtype()));
}

}  // namespace meshard
