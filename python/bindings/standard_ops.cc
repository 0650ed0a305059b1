#include "python/bindings/standard_ops.h"

#include "meshard/core.h"
#include "python/bindings/op_arguments.h"

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
  Tensor is_ordinary = logical_and(logical_and(isfinite(a), isfinite(b)), not_equal(a, 0));
  return where(is_ordinary, exact, floor(divide(a, b)));
}

Tensor standard_remainder(In a, In b) {
  Tensor rest = remainder(a, b);
  if (!is_floating(rest.dtype())) return rest;
  return where(equal(rest, 0), copysign(rest, b), rest);
}

void bind_standard_ops(nb::module_& module) {
  module.def("floor_divide", bound<standard_floor_divide>, nb::arg("x1"), nb::arg("x2"),
             "x1 / x2 rounded down. Integers divided by 0 depend on the plugin.");
  module.def("remainder", bound<standard_remainder>, nb::arg("x1"), nb::arg("x2"),
             "What remains of x1 after floor division by x2; it has the sign of x2.");
}

}  // namespace meshard::python
