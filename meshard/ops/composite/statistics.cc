#include "meshard/ops/composite/statistics.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

// x divided by a constant of the program.
Tensor divide_by(const Tensor& x, double number) {
  return divide(x, filled(TensorType{x.dtype(), {}}, number));
}

double count(const Shape& shape, const Dimensions& dimensions) {
  double n = 1;
  for (std::int64_t d : dimensions) n *= static_cast<double>(shape[d]);
  return n;
}

Tensor variance(const Tensor& x, const Dimensions& dimensions, double correction, bool keepdims) {
  double n = count(x.shape(), dimensions);
  Tensor distance = subtract(x, divide_by(sum(x, dimensions, true), n));
  Tensor squares = is_complex(x.dtype()) ? add(square(real(distance)), square(imag(distance)))
                                         : square(distance);
  return divide_by(sum(squares, dimensions, keepdims), std::max(n - correction, 0.0));
}

}  // namespace

Tensor mean(In x, DimensionList dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("mean", x), wide = for_computation(operand);
  Dimensions along = dimensions.resolve(wide.shape().rank(), "mean", effective_source(x.where));
  Tensor result = divide_by(sum(wide, along, keepdims), count(wide.shape(), along));
  return astype(result, float_result_dtype(operand.dtype()));
}

Tensor var(In x, DimensionList dimensions, double correction, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("var", x), wide = for_computation(operand);
  Dimensions along = dimensions.resolve(wide.shape().rank(), "var", effective_source(x.where));
  return astype(variance(wide, along, correction, keepdims),
                real_dtype(float_result_dtype(operand.dtype())));
}

Tensor std_dev(In x, DimensionList dimensions, double correction, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("std_dev", x), wide = for_computation(operand);
  Dimensions along = dimensions.resolve(wide.shape().rank(), "std_dev", effective_source(x.where));
  return astype(sqrt(variance(wide, along, correction, keepdims)),
                real_dtype(float_result_dtype(operand.dtype())));
}

}  // namespace meshard
