#include "python/bindings/ops/standard_ops.h"

#include <cmath>

#include "meshard/core.h"
#include "python/bindings/ops/op_arguments.h"

namespace nb = nanobind;

namespace meshard::python {
namespace {

template <Tensor (*op)(In, In)>
nb::object bound(const Operand& x1, const Operand& x2) {
  CallerLine line;
  settle({&x1, &x2});
  return tensor_object(op(x1.in(), x2.in()));
}

}  // namespace

Tensor standard_floor_divide(In a, In b) {
  Tensor exact = floor_divide(a, b);
  if (!is_floating(exact.dtype())) return exact;
  // A number as divisor is known to be finite.
  const bool is_finite = !b.tensor && std::isfinite(b.scalar.as_double());
  Tensor is_ordinary = logical_and(isfinite(a), not_equal(a, 0));
  if (!is_finite) is_ordinary = logical_and(is_ordinary, isfinite(b));
  return where(is_ordinary, exact, floor(divide(a, b)));
}

Tensor standard_remainder(In a, In b) {
  Tensor rest = remainder(a, b);
  if (!is_floating(rest.dtype())) return rest;
  const bool is_negative = !b.tensor && b.scalar.as_double() < 0;
  Tensor zero =
      b.tensor ? copysign(zeros_like(rest), b) : full({}, is_negative ? -0.0 : 0.0, rest.dtype());
  return where(equal(rest, 0), zero, rest);
}

void bind_standard_ops(nb::module_& module) {
  module.def("floor_divide", bound<standard_floor_divide>, nb::arg("x1"), nb::arg("x2"),
             "x1 / x2 rounded down. Integers divided by 0 depend on the plugin.");
  module.def("remainder", bound<standard_remainder>, nb::arg("x1"), nb::arg("x2"),
             "What remains of x1 after floor division by x2; it has the sign of x2.");
}

}  // namespace meshard::python
