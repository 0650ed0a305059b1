#include "python/bindings/ops/standard_ops.h"

#include <algorithm>

#include "meshard/core.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

// A bound of integers of this dtype. A number beyond the dtype bounds nothing on that side, and
// everything on the other.
In bound_of(DType dtype, const Operand& bound) {
  In in = bound.in();
  if (in.tensor || !is_integer(dtype) || in.scalar.kind != ScalarKind::kInteger) return in;
  const IntegerLimits limits = integer_limits(dtype);
  const bool is_negative = !in.scalar.is_above_i64 && in.scalar.integer < 0;
  if (is_negative)
    in.scalar = Scalar(std::max(in.scalar.integer, limits.min));
  else if (static_cast<std::uint64_t>(in.scalar.integer) > limits.max)
    in.scalar = Scalar(limits.max);
  return in;
}

// maximum and minimum instead of the op clip, which also takes the dtypes of its bounds.
TensorObject standard_clip(const Operand& x, const OptionalOperand& min,
                           const OptionalOperand& max) {
  CallerLine line;
  settle({&x, &min.operand, &max.operand});
  In in = x.in();
  const Tensor whole = in.tensor ? *in.tensor : tensor_of(in);
  Tensor result = whole;
  if (min.given) result = maximum(result, bound_of(whole.dtype(), min.operand));
  if (max.given) result = minimum(result, bound_of(whole.dtype(), max.operand));
  if (result.dtype() != whole.dtype()) result = astype(result, whole.dtype());
  return tensor_object(std::move(result));
}

}  // namespace

void bind_standard_ops(nb::module_& module) {
  module.def("clip", standard_clip, nb::arg("x"), nb::arg("min").none() = nb::none(),
             nb::arg("max").none() = nb::none(),
             "The elements, at least `min` and at most `max`. The dtype is that of x.\n\n"
             "Where min is greater than max the result is max.");
}

}  // namespace meshard::python
